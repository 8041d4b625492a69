"""Expected results, made again by an independent engine and compared with what arrived."""
