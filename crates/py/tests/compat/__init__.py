"""The documented interface, fact by fact: code written for it has to run."""
