#!/usr/bin/env bash
# Adds events of wallets with psql alone: producer.sh EVENTS LEDGER
#
# DATABASE_URL names the database and WALLETS how many wallets there are (default 1000). EVENTS are committed; one in
# ten transactions is rolled back after its event was added. The ledger is as the load generator's. Rolling back and
# keeping a ledger apart, this is what a program in any language does.
set -euo pipefail

events=$1 ledger=$2
wallets=${WALLETS:-1000}
run=$$-$(date +%s%N)

payloads=(
  '{"from":"psql","emoji":"📮","beyond":9007199254740993,"one":1.0}'
  '{"from":"psql","twice":1,"twice":2,"escapes":"\u0000\"\\\/ \ud83d\ude00"}'
  $'{ "from" : "psql",\n\t"quote" : "it\'s $1 :name" }\n'
)

script() {
  local i=0 committed=0 end
  echo "INSERT INTO wallets (id, balance) SELECT 'w-' || n, 1000000000000 FROM generate_series(0, $wallets - 1) n ON CONFLICT DO NOTHING;"
  while (( committed < events )); do
    if (( RANDOM % 10 )); then end=COMMIT committed=$((committed + 1)); else end=ROLLBACK; fi
    transaction "w-$((RANDOM % wallets))" "$run-$((++i))" "\$payload\$${payloads[i % ${#payloads[@]}]}\$payload\$" $end
  done
}

# The first statement locks the wallet, so that its events are numbered in the order of their commits.
transaction() { # WALLET REFERENCE PAYLOAD COMMIT|ROLLBACK
  cat <<SQL
BEGIN;
SELECT version + 1 AS version FROM wallets WHERE id = '$1' FOR UPDATE \gset
UPDATE wallets SET balance = balance - 1, version = :version WHERE id = '$1';
INSERT INTO entries (wallet, version, amount, reference) VALUES ('$1', :version, -1, '$2');
INSERT INTO outbox_events (aggregate_type, aggregate_id, aggregate_version, event_type, payload, headers)
VALUES ('wallet', '$1', :version, 'WalletDebited', $3, '{"reference": "$2"}')
RETURNING event_id \gset
$4;
SELECT json_build_object('event_id', :'event_id', 'key', '$1', 'sequence', :version, 'type', 'WalletDebited',
  'sha256', encode(sha256(convert_to($3, 'UTF8')), 'hex'), 'headers', json_build_object('reference', '$2'),
  'committed', '$4' = 'COMMIT');
SQL
}

script | psql "$DATABASE_URL" --no-psqlrc --quiet --tuples-only --no-align --set ON_ERROR_STOP=1 >"$ledger"
