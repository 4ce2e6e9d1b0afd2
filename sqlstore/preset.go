package sqlstore

import "slices"

// Preset describes a table that a known framework lays out, or that is often met.
type Preset struct {
	Name  string // what it is called in a configuration
	About string // one line about where the table comes from
	Table string // the name that the table has unless its user gave it another

	// DeletePublished says that nothing in the table can mark a row as published, so that Config.DeletePublished must be set.
	DeletePublished bool

	Mapping Mapping
}

// FindPreset returns the preset of the name, in the words of the database. The caller may change its Mapping.
func FindPreset(d Dialect, name string) (preset Preset, ok bool) {
	presets := Presets(d)
	i := slices.IndexFunc(presets, func(p Preset) bool { return p.Name == name })
	if i < 0 {
		return Preset{}, false
	}
	return presets[i], true
}

// Presets returns all presets, in the words of the database.
func Presets(d Dialect) []Preset {
	return []Preset{
		{
			Name:  "outbox-events",
			About: "outbox_events with columns for claims, retries and four states",
			Table: "outbox_events",
			Mapping: Mapping{
				ID: "id", EventID: "event_id", AggregateType: "aggregate_type", AggregateID: "aggregate_id", EventType: "event_type",
				Payload: "payload", Status: "status", PublishedAt: "published_at", RetryCount: "retry_count",
				NextAttemptAt: "next_attempt_at", ClaimToken: "claim_token", ProcessingUntil: "processing_until", CreatedAt: "created_at",
				Words: Words{Pending: []string{"PENDING"}, Processing: "PROCESSING", Published: "PUBLISHED", Dead: "DEAD"},
			},
		},
		{
			Name:  "event-outbox",
			About: "event_outbox with three states; the numeric event_id is the identity that consumers see",
			Table: "event_outbox",
			Mapping: Mapping{
				ID: "event_id", AggregateType: "aggregate_type", AggregateID: "aggregate_id", EventType: "event_type",
				Payload: "payload", Status: "status", PublishedAt: "published_at", RetryCount: "retry_count", CreatedAt: "created_at",
				Words: Words{Pending: []string{"PENDING"}, Published: "PUBLISHED", Dead: "FAILED"},
			},
		},
		{
			Name:  "wallet-outbox",
			About: "wallet_outbox as JPA writes it: ordered by seq, a text id, three states",
			Table: "wallet_outbox",
			Mapping: Mapping{
				ID: "seq", EventID: "id", AggregateType: "'wallet'", AggregateID: "aggregate_id", EventType: "event_type",
				Payload: "payload", Status: "status", UpdatedAt: "updated_at", CreatedAt: "created_at",
				Words: Words{Pending: []string{"PENDING"}, Published: "PUBLISHED", Dead: "FAILED"},
			},
		},
		{
			Name:  "outbox-event",
			About: "outbox_event as JPA writes it: topic and partition key are columns",
			Table: "outbox_event",
			Mapping: Mapping{
				ID: "id", AggregateType: "aggregate_type", AggregateID: "aggregate_id", PartitionKey: "partition_key",
				EventType: "event_type", Topic: "topic", Payload: "payload", Status: "status", LastError: "error_message",
				UpdatedAt: "updated_at", CreatedAt: "created_at",
				Words: Words{Pending: []string{"PENDING"}, Processing: "PROCESSING", Published: "PUBLISHED", Dead: "FAILED"},
			},
		},
		{
			Name:            "debezium",
			About:           "the outbox table of Debezium's event router; rows are deleted when published",
			Table:           "outbox",
			DeletePublished: true,
			Mapping: Mapping{
				ID: "id", AggregateType: "aggregatetype", AggregateID: "aggregateid", EventType: "type", Payload: "payload",
			},
		},
		eventuateTram(d),
		{
			Name:  "cap",
			About: "cap.published of DotNetCore.CAP, in place of CAP's own sending",
			Table: capTable(d),
			Mapping: Mapping{
				ID: "Id", EventID: "Content->Headers->cap-msg-id, Id", AggregateType: "'cap'", EventType: "Name", Topic: "Name",
				AggregateID: "Content->Headers->cap-kafka-key, Id", Payload: "Content->Value", Headers: "Content->Headers",
				Status: "StatusName", RetryCount: "Retries", CreatedAt: "Added",
				Words: Words{Pending: []string{"Scheduled"}, Published: "Succeeded", Dead: "Failed"},
			},
		},
	}
}

// eventuateTram reads messages as Eventuate's CDC service does: the partition id is the key, or else the message's own id,
// and the record holds payload and headers together.
func eventuateTram(d Dialect) Preset {
	p := Preset{
		Name:  "eventuate-tram",
		About: "message of Eventuate Tram, in place of its CDC service",
		Table: "message",
		Mapping: Mapping{
			ID: "id", AggregateType: "headers->event-aggregate-type, destination", AggregateID: "headers->PARTITION_ID, id",
			EventType: "headers->event-type, headers->command_type, headers->reply_type, 'message'", Topic: "destination",
			Payload: `(CONCAT('{"payload":', JSON_QUOTE(CONVERT(payload USING utf8mb4)), ',"headers":', CONVERT(headers USING utf8mb4), '}'))`, Headers: "headers",
			Status: "published", CreatedAt: "creation_time",
			Words: Words{Pending: []string{"0"}, Published: "1"},
		},
	}
	if d.name == Postgres.name {
		p.Table = "eventuate.message"
		p.Mapping.Payload = `('{"payload":' || to_json(payload) || ',"headers":' || headers || '}')`
	}
	return p
}

// capTable is a table in the schema cap, or, where tables have no schemas, one with a dot in its name.
func capTable(d Dialect) string {
	if d.name == Postgres.name {
		return "cap.published"
	}
	return `"cap.published"`
}
