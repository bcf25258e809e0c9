"""What ``nono_py.audit`` is made of; import from there."""
