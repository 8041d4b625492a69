"""Spark itself: masters, environment, session and Python workers, and what it says in logs and progress reports."""
