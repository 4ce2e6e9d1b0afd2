"""Applies each event once: reads from Kafka, keeps receipts in PostgreSQL.

Environment: KAFKA_BROKERS, TOPIC, CONSUMER (group and name in the receipts), DATABASE_URL. The tables are in schema.sql.

The order is all there is to it: receipt, effect, COMMIT, and only then the position at the broker. Whatever crashes in between,
the message comes again, and meets its receipt.
"""

import json
import os
import signal
import sys

import psycopg
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

TOPIC = os.environ["TOPIC"]
CONSUMER = os.environ["CONSUMER"]

# Waits while another transaction applies the same. Returns true for a new receipt; one that it met counts a duplicate.
RECEIPT = """
INSERT INTO inbox_receipts (consumer, dedup_key, source) VALUES (%s, %s, %s)
ON CONFLICT (dedup_key, consumer) DO UPDATE SET duplicates = inbox_receipts.duplicates + 1, last_duplicate_at = clock_timestamp()
RETURNING duplicates = 0
"""

# The effect. It must be in the same database, and on the same connection, as the receipt.
CREDIT = """
INSERT INTO balances (wallet, amount) VALUES (%s, %s)
ON CONFLICT (wallet) DO UPDATE SET amount = balances.amount + excluded.amount
"""


class Malformed(Exception):
    """No retry makes this message one that can be applied."""


def read(message):
    """Returns the event id and what to apply."""
    headers = dict(reversed(message.headers() or []))  # the first of a name counts
    raw_id = headers.get("X-Event-Id") or b""
    try:
        event_id = raw_id.decode()
    except UnicodeDecodeError as error:
        raise Malformed("the header X-Event-Id is not valid UTF-8") from error
    if not 1 <= len(raw_id) <= 255 or not event_id.isprintable():
        raise Malformed("the header X-Event-Id is missing or broken")
    if headers.get("X-Event-Type") != b"WalletCredited":
        raise Malformed(f"the event type {headers.get('X-Event-Type')!r} is unknown")
    try:
        payload = json.loads(message.value() or b"")
        wallet, amount = payload["wallet"], payload["amount"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Malformed(f"the payload does not decode: {error!r}") from error
    if type(wallet) is not str or type(amount) is not int:
        raise Malformed("wallet must be a string, and amount an integer")
    return event_id, wallet, amount


def apply(database, message):
    """Receipt and effect in one transaction. Returns after its COMMIT."""
    event_id, wallet, amount = read(message)
    source = f"kafka:{message.topic()}/{message.partition()}@{message.offset()}"
    while True:
        try:
            with database.transaction():
                is_new = database.execute(RECEIPT, (CONSUMER, event_id, source)).fetchone()[0]
                if is_new:
                    database.execute(CREDIT, (wallet, amount))
            return
        except (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure):
            continue  # the transaction lost against another one, and is begun again
        except (psycopg.DataError, psycopg.IntegrityError, UnicodeError) as error:
            raise Malformed(f"the database refuses it: {error}") from error


def dead_letter(producer, message, error):
    """Returns when the broker has the dead letter, so that the position may pass the message."""
    failed = []
    failure = {
        "X-Origin-Topic": message.topic(),
        "X-Origin-Partition": str(message.partition()),
        "X-Origin-Offset": str(message.offset()),
        "X-Failure-Consumer": CONSUMER,
        "X-Failure-Class": "malformed",
        "X-Failure-Message": str(error)[:1024],
    }
    kept = [header for header in message.headers() or [] if header[0] not in failure]  # a second failure replaces the first
    headers = kept + list(failure.items())
    producer.produce(
        TOPIC + ".dlt", message.value(), message.key(), headers=headers, on_delivery=lambda error, _: failed.append(error) if error else None
    )
    if producer.flush(30) or failed:
        raise KafkaException(failed[0] if failed else KafkaError(KafkaError._MSG_TIMED_OUT))
    print(f"dead letter: {error}", file=sys.stderr)


def finish(consumer, message):
    """Lets the position pass the message. The client sends positions in the background, and when it closes."""
    try:
        consumer.store_offsets(message)
    except KafkaException as error:
        if error.args[0].code() != KafkaError._STATE:
            raise
        # the partition went to another member, which gets the message again


def main():
    stop = []
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: stop.append(True))
    brokers = os.environ["KAFKA_BROKERS"]
    producer = Producer({"bootstrap.servers": brokers, "acks": "all", "enable.idempotence": True})
    consumer = Consumer(
        {
            "bootstrap.servers": brokers,
            "group.id": CONSUMER,
            "auto.offset.reset": "earliest",
            "enable.auto.offset.store": False,  # a message that was only fetched must not move the position
            "auto.commit.interval.ms": 1000,
            "session.timeout.ms": 10_000,  # the partitions of a member that died wait this long
        }
    )
    # Any other error ends the process: nothing is acknowledged, whoever runs it starts it again, and the message comes again.
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as database:
        consumer.subscribe([TOPIC])
        try:
            while not stop:
                message = consumer.poll(0.5)
                if message is None:
                    continue
                if message.error():
                    raise KafkaException(message.error())
                try:
                    apply(database, message)
                except Malformed as error:
                    dead_letter(producer, message, error)
                finish(consumer, message)
        finally:
            consumer.close()


main()
