package mongo

import "hash/crc32"

// DefaultShards is the number of shards that Init lays an outbox out for unless StoreConfig.Shards says otherwise.
const DefaultShards = 64

// maxShards is the same as in the SQL stores.
const maxShards = 32767

// shardOf returns the shard of a key: its CRC-32 (IEEE), which every language has at hand, modulo the number of shards.
func shardOf(key string, shards int) int {
	return int(crc32.ChecksumIEEE([]byte(key)) % uint32(shards))
}
