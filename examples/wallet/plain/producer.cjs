// Adds events of wallets from JavaScript with SQL alone: node producer.cjs EVENTS LEDGER
//
// DATABASE_URL names the database and WALLETS how many wallets there are (default 1000). EVENTS are committed; one in
// ten transactions is rolled back after its event was added. The ledger is as the load generator's. NODE_PATH is what
// fetch.sh prints.
'use strict';

const { createHash } = require('node:crypto');
const { writeFileSync } = require('node:fs');
const { Pool } = require('pg');
const webhooks = require('@octokit/webhooks-examples');

const [events, ledgerFile] = [Number(process.argv[2]), process.argv[3]];
const wallets = Number(process.env.WALLETS || 1000);
const writers = 4;
const run = `${process.pid}-${Date.now()}`;

const payloads = [
  '{"from":"node","emoji":"🐎","beyond":9007199254740993,"one":1.0,"large":1e400}',
  '{"from":"node","twice":1,"twice":2,"escapes":"\\u0000\\"\\\\\\/ \\ud83d\\ude00"}',
  '{ "from" : "node",\r\n\t"deep" : [[[[{"a":{"b":[]}}]]]] }\n',
  ...webhooks.slice(0, 5).map((webhook) => JSON.stringify(webhook.examples[0], null, 1)),
];

const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: writers });
const ledger = [];
let left = events;
let references = 0;

// The first statement locks the wallet, so that its events are numbered in the order of their commits.
async function transaction(client, end) {
  const wallet = `w-${Math.floor(Math.random() * wallets)}`;
  const reference = `${run}-${++references}`;
  const payload = payloads[references % payloads.length];
  const headers = { reference };

  await client.query('BEGIN');
  const locked = await client.query('SELECT version + 1 AS version FROM wallets WHERE id = $1 FOR UPDATE', [wallet]);
  const { version } = locked.rows[0];
  await client.query('UPDATE wallets SET balance = balance + 1, version = $2 WHERE id = $1', [wallet, version]);
  await client.query('INSERT INTO entries (wallet, version, amount, reference) VALUES ($1, $2, 1, $3)', [wallet, version, reference]);
  const added = await client.query(
    `INSERT INTO outbox_events (aggregate_type, aggregate_id, aggregate_version, event_type, payload, headers)
     VALUES ('wallet', $1, $2, 'WalletCredited', $3, $4)
     RETURNING event_id`,
    [wallet, version, payload, JSON.stringify(headers)],
  );
  await client.query(end);

  ledger.push(JSON.stringify({
    event_id: added.rows[0].event_id,
    key: wallet,
    sequence: Number(version),
    type: 'WalletCredited',
    sha256: createHash('sha256').update(payload).digest('hex'),
    headers,
    committed: end === 'COMMIT',
  }));
}

async function writer() {
  const client = await pool.connect();
  while (left > 0) {
    const end = Math.random() < 0.1 ? 'ROLLBACK' : 'COMMIT';
    if (end === 'COMMIT') left--;
    await transaction(client, end);
  }
  client.release();
}

async function main() {
  await pool.query(
    "INSERT INTO wallets (id, balance) SELECT 'w-' || n, 1000000000000 FROM generate_series(0, $1::int - 1) n ON CONFLICT DO NOTHING",
    [wallets],
  );
  await Promise.all(Array.from({ length: writers }, writer));
  await pool.end();
  writeFileSync(ledgerFile, ledger.map((line) => `${line}\n`).join(''));
}

main();
