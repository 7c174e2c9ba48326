"""`python -m chasles`: the `chasles` command for systems where it is not on the path."""

from chasles.cli import main

if __name__ == "__main__":
    main()
