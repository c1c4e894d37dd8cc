"""Archive: the signed part of the log as Parquet files, segment by segment, beside the stream."""
