// Applies each event once: reads from RabbitMQ, keeps receipts in MariaDB or MySQL.
//
// Environment: AMQP_URL, QUEUE, CONSUMER (the name in the receipts), DATABASE_URL. The tables are in schema.sql; the queues QUEUE and
// QUEUE.dlt must exist.
//
// The order is all there is to it: receipt, effect, COMMIT, and only then the acknowledgement. Whatever crashes in between,
// the message comes again, and meets its receipt.
'use strict';

const amqp = require('amqplib');
const mysql = require('mysql2/promise');

const { AMQP_URL, QUEUE, CONSUMER, DATABASE_URL } = process.env;

// Waits while another transaction applies the same: it takes the exclusive lock at once, where INSERT IGNORE would take a shared
// one, and deadlock. It counts 1 row for a new receipt, and 2 for one that it met.
const receipt = `
  INSERT INTO inbox_receipts (consumer, dedup_key, source) VALUES (?, ?, ?)
  ON DUPLICATE KEY UPDATE duplicates = duplicates + 1, last_duplicate_at = utc_timestamp(6)`;

// The effect. It must be in the same database, and on the same connection, as the receipt.
const credit = 'INSERT INTO balances (wallet, amount) VALUES (?, ?) ON DUPLICATE KEY UPDATE amount = amount + VALUES(amount)';

const deadlock = 1213;
const lockWaitTimeout = 1205; // it rolls back the statement only: the whole transaction is rolled back and begun again
const refused = [1048, 1062, 1264, 1366, 1406, 4025]; // null, duplicate, out of range, wrong value, too long, CHECK

// No retry makes this message one that can be applied.
class Malformed extends Error {}

function read(message) {
  const headers = message.properties.headers || {};
  const eventId = headers['X-Event-Id'];
  if (typeof eventId !== 'string' || eventId === '' || Buffer.byteLength(eventId) > 255 || /\p{Cc}/u.test(eventId)) {
    throw new Malformed('the header X-Event-Id is missing or broken');
  }
  if (headers['X-Event-Type'] !== 'WalletCredited') {
    throw new Malformed(`the event type ${headers['X-Event-Type']} is unknown`);
  }
  let payload;
  try {
    payload = JSON.parse(message.content.toString('utf8'));
  } catch (error) {
    throw new Malformed('the payload is not valid JSON');
  }
  if (typeof payload?.wallet !== 'string' || !Number.isSafeInteger(payload.amount)) {
    throw new Malformed('wallet must be a string, and amount an integer');
  }
  return { eventId, wallet: payload.wallet, amount: payload.amount };
}

// Receipt and effect in one transaction. Returns after its COMMIT.
async function apply(database, message) {
  const { eventId, wallet, amount } = read(message);
  for (;;) {
    try {
      await database.beginTransaction();
      const [{ affectedRows }] = await database.execute(receipt, [CONSUMER, eventId, `rabbitmq:/${QUEUE}`]);
      if (affectedRows === 1) {
        await database.execute(credit, [wallet, amount]);
      }
      await database.commit();
      return;
    } catch (error) {
      await database.rollback();
      if (refused.includes(error.errno)) {
        throw new Malformed(`the database refuses it: ${error.message}`);
      }
      if (error.errno !== deadlock && error.errno !== lockWaitTimeout) {
        throw error;
      }
    }
  }
}

// Returns when the broker has the dead letter, so that the message may be acknowledged. A queue that does not exist returns it.
async function deadLetter(channel, message, error) {
  let returned = false;
  channel.once('return', () => { returned = true; });
  const headers = {
    ...message.properties.headers,
    'X-Origin-Topic': `/${QUEUE}`,
    'X-Failure-Consumer': CONSUMER,
    'X-Failure-Class': 'malformed',
    'X-Failure-Message': error.message.slice(0, 1024),
  };
  const { contentType, messageId, type } = message.properties;
  channel.publish('', `${QUEUE}.dlt`, message.content, { headers, contentType, messageId, type, persistent: true, mandatory: true });
  await channel.waitForConfirms();
  if (returned) {
    throw new Error(`the queue ${QUEUE}.dlt does not exist`);
  }
  console.error(`dead letter: ${error.message}`);
}

async function handle(database, channel, message) {
  try {
    await apply(database, message);
  } catch (error) {
    if (!(error instanceof Malformed)) {
      throw error;
    }
    await deadLetter(channel, message, error);
  }
  channel.ack(message);
}

async function main() {
  const database = await mysql.createConnection(DATABASE_URL);
  await database.query('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED');
  const connection = await amqp.connect(AMQP_URL);
  const channel = await connection.createConfirmChannel();

  // Any other error ends the process: nothing is acknowledged, whoever runs it starts it again, and the message comes again.
  const fail = (error) => { console.error(error); process.exit(1); };
  database.on('error', fail);
  connection.on('error', fail);
  channel.on('error', fail);

  let stopping = false;
  let last = Promise.resolve(); // one message after the other, so that those of a key keep their order
  await channel.prefetch(50);
  const { consumerTag } = await channel.consume(QUEUE, (message) => {
    if (message === null) {
      fail(new Error(`the queue ${QUEUE} was deleted`));
    }
    last = last.then(() => (stopping ? undefined : handle(database, channel, message))).catch(fail);
  });

  const stop = async () => {
    if (stopping) {
      return;
    }
    stopping = true;
    await channel.cancel(consumerTag);
    await last; // the one that is being applied; the others go back to the queue
    await channel.close();
    await connection.close();
    await database.end();
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
}

main().catch((error) => { console.error(error); process.exit(1); });
