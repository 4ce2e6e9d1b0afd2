package config

import "time"

// Redis is a sink of type redis: Redis Streams, also those of Valkey.
type Redis struct {
	// Addresses has at least one host:port: of the server, of sentinels with
	// Master, of nodes with Cluster.
	Addresses []string
	// Cluster says that the server is a cluster.
	Cluster bool
	// Master is the name by which sentinels know the server.
	Master string
	// User and Password log in; User may be empty.
	User     string
	Password Secret
	// SentinelUser and SentinelPassword log in to the sentinels.
	SentinelUser     string
	SentinelPassword Secret
	// DB is the number of the database. The default is 0.
	DB int
	// TLS is nil for plain connections.
	TLS *TLS
	// MaxMessageBytes is the largest message, 1 KiB to 512 MiB. The default
	// is 64 MiB.
	MaxMessageBytes int
	// IdempotentFor is how long a repetition is recognized; 0, the default,
	// recognizes none.
	IdempotentFor time.Duration
	// Replicas is how many replicas must have an event. The default is 0.
	Replicas int
	// Fsync says that an event must be on disk.
	Fsync bool
	// Trim is how streams are trimmed to MaxEntries. The default is none.
	Trim       RedisTrim
	MaxEntries int
}

// RedisTrim is a way to trim streams.
type RedisTrim string

// The ways to trim streams.
const (
	RedisTrimNone   RedisTrim = "none"
	RedisTrimSafe   RedisTrim = "safe"
	RedisTrimAlways RedisTrim = "always"
)

const (
	maxReplicas   = 1000
	maxEntries    = 1_000_000_000_000
	maxRedisIndex = 1 << 20
)

func readRedis(o *object) *Redis {
	redis := &Redis{MaxMessageBytes: 64 << 20, Trim: RedisTrimNone}
	readRedisPlace(o, redis)
	readRedisDurability(o, redis)
	size(o, "max_message_bytes", &redis.MaxMessageBytes, 1<<10, 512<<20)
	choice(o, "trim", &redis.Trim, RedisTrimNone, RedisTrimSafe, RedisTrimAlways)
	integer(o, "max_entries", &redis.MaxEntries, 1, maxEntries)
	switch {
	case redis.Trim != RedisTrimNone:
		o.require("max_entries", "say how many of a stream's newest entries are kept at least")
	case o.has("max_entries"):
		o.problem("max_entries", "means nothing without trim", "write trim: safe, or remove it")
	}
	return redis
}

func readRedisPlace(o *object, redis *Redis) {
	o.require("addresses", "write addresses: [host:6379]")
	if strs(o, "addresses", &redis.Addresses) {
		for _, address := range redis.Addresses {
			if _, port, ok := splitHostPort(address); !ok || port == 0 {
				o.problem("addresses", "an element is not host:port", "write host:6379, without a scheme")
				break
			}
		}
	}
	boolean(o, "cluster", &redis.Cluster)
	str(o, "master", &redis.Master)
	if redis.Cluster {
		o.exclude("cluster", "master", "a cluster has no sentinels: keep one of both")
		o.exclude("cluster", "db", "a cluster has only the database 0: remove it")
	}
	if len(redis.Addresses) > 1 && !redis.Cluster && redis.Master == "" {
		o.problem("addresses", "are several", "say that they are a cluster (cluster: true), or sentinels (master: NAME)")
	}
	str(o, "user", &redis.User)
	str(o, "password", &redis.Password)
	str(o, "sentinel_user", &redis.SentinelUser)
	str(o, "sentinel_password", &redis.SentinelPassword)
	for _, login := range []string{"", "sentinel_"} {
		if o.has(login+"user") && !o.has(login+"password") {
			o.problem(login+"user", "has no password", "give "+login+"password as well")
		}
	}
	if o.has("sentinel_password") && !o.has("master") {
		o.problem("sentinel_password", "means nothing without master", "name the master as the sentinels do")
	}
	integer(o, "db", &redis.DB, 0, maxRedisIndex)
	redis.TLS = readTLS(o.field("tls"))
}

func readRedisDurability(o *object, redis *Redis) {
	duration(o, "idempotent_for", &redis.IdempotentFor, 0)
	if redis.IdempotentFor > 0 && redis.IdempotentFor < time.Minute {
		o.problem("idempotent_for", "is too short", "write 0, or 1m or more")
	}
	integer(o, "replicas", &redis.Replicas, 0, maxReplicas)
	boolean(o, "fsync", &redis.Fsync)
	if (redis.Replicas > 0 || redis.Fsync) && redis.IdempotentFor == 0 {
		o.problem(o.firstOf("replicas", "fsync"), "needs idempotent_for", "what was not confirmed in time is sent again: write idempotent_for: 1h")
	}
}
