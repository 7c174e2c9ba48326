"""Joint-motion property matrices and their time derivatives of any order (Mitra)."""
