"""Implementation of ``nono_py.audit``; import from there."""
