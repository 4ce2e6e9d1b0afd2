package main

import (
	"context"
	_ "embed"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

//go:embed bare.sql
var bareTable string

//go:embed fill_bare.sql
var fillBare string

// drainBarely drains a table by the shortest loop that does: read, produce and wait for all acknowledgements, delete.
func drainBarely(ctx context.Context, o options, p place) (result, error) {
	if _, err := p.db.ExecContext(ctx, bareTable); err != nil {
		return result{}, err
	}
	if _, err := p.db.ExecContext(ctx, fillBare, o.events, o.keys, o.size); err != nil {
		return result{}, err
	}
	if _, err := p.db.ExecContext(ctx, "VACUUM ANALYZE bare"); err != nil {
		return result{}, err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(os.Getenv("POSTRIDER_TEST_KAFKA")), kgo.DefaultProduceTopic(p.topic),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerLinger(0))
	if err != nil {
		return result{}, err
	}
	defer client.Close()

	start := time.Now()
	for n := o.batch; n == o.batch; {
		if n, err = moveBatch(ctx, p, client, o.batch); err != nil {
			return result{}, err
		}
	}
	took := time.Since(start)
	peak, err := peakMemory(os.Getpid())
	return result{took: took, peak: peak}, err
}

// moveBatch returns how many rows it moved.
func moveBatch(ctx context.Context, p place, client *kgo.Client, batch int) (int, error) {
	rows, err := p.db.QueryContext(ctx, "SELECT id, key, payload FROM bare ORDER BY id LIMIT $1", batch)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var ids []int64
	var records []*kgo.Record
	for rows.Next() {
		var id int64
		r := &kgo.Record{}
		if err := rows.Scan(&id, &r.Key, &r.Value); err != nil {
			return 0, err
		}
		ids, records = append(ids, id), append(records, r)
	}
	if err := rows.Err(); err != nil || len(ids) == 0 {
		return 0, err
	}
	if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return 0, err
	}
	_, err = p.db.ExecContext(ctx, "DELETE FROM bare WHERE id = ANY ($1)", ids)
	return len(ids), err
}
