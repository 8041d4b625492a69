-- Lines of CSV as plain text, which needs no jar of a format.
CREATE TABLE purchases (
  line STRING,
  gem_pack_id AS CAST(SPLIT_INDEX(line, ',', 0) AS INT),
  price AS CAST(SPLIT_INDEX(line, ',', 1) AS INT),
  event_time AS TO_TIMESTAMP_LTZ(CAST(SPLIT_INDEX(line, ',', 2) AS BIGINT), 3),
  WATERMARK FOR event_time AS event_time - INTERVAL '0.001' SECOND
) WITH (
  'connector' = 'kafka', 'format' = 'raw', 'topic' = '${STREAMGAUGE_INPUT}',
  'properties.bootstrap.servers' = '${STREAMGAUGE_BROKERS}', 'properties.group.id' = '${STREAMGAUGE_GROUP}',
  'scan.startup.mode' = 'earliest-offset',
  -- A reader without a partition would hold the watermark back, and no window would close.
  'scan.parallelism' = '1'
);

CREATE TABLE results (line STRING) WITH (
  'connector' = 'kafka', 'format' = 'raw', 'topic' = '${STREAMGAUGE_OUTPUT}',
  'properties.bootstrap.servers' = '${STREAMGAUGE_BROKERS}', 'properties.linger.ms' = '5',
  'sink.delivery-guarantee' = 'at-least-once'
);

INSERT INTO results
SELECT CONCAT_WS(',', CAST(gem_pack_id AS STRING), CAST(SUM(price) AS STRING),
  CAST(1000 * CAST(TIMESTAMPDIFF(SECOND, TIMESTAMP '1970-01-01 00:00:00', window_end) AS BIGINT) AS STRING))
FROM TUMBLE(TABLE purchases, DESCRIPTOR(event_time), INTERVAL '2' SECOND)
GROUP BY gem_pack_id, window_start, window_end;
