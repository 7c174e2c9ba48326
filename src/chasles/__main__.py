"""Run the `chasles` command as `python -m chasles`."""

from chasles.cli import main

if __name__ == "__main__":
    main()
