"""Opening a Spark session and its Python workers."""
