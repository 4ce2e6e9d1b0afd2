package sqlstore

// Mapping says how a table that somebody else designed is read and written as an outbox. Nothing of theirs is altered: what
// the table lacks stands in side tables of ours, which Init creates. ID, AggregateID, EventType and Payload are required.
//
// A field that names a column holds the column's name, in the spelling that the database stores. A field that is only
// read may hold a term instead:
//
//	type                     the column of this name
//	headers->PARTITION_ID    a member of the JSON object in a column of any JSON or text type; NULL when there is none
//	'order'                  this text for every row
//	(lower(type))            an SQL expression over the columns of their table, in parentheses; one that fails for a
//	                         row fails the read of all rows
//	headers->KEY, id         the first of these terms that is not NULL
//
// # States
//
// With Status, the words of Words tell the state of a row. A row with any other word is never touched. Without Status, a
// row is PENDING while PublishedAt is NULL. Without both, every row that is there is PENDING, and
// Config.DeletePublished must be set.
//
// A failed event has a row in a side table, which holds its attempts, its error and the time of its next attempt; where
// their table has columns for these, they are written there as well, cut to fit. Their DEAD word alone makes an event
// DEAD, and so does their PENDING word make it PENDING with its attempts restarted, whoever wrote it. What the side table holds
// is of an id and a key together: a new row with the id of a deleted one starts anew, unless it has the same key as well.
type Mapping struct {
	// ID is the column that identifies a row: of any integer, UUID or text type, with a unique index. So a view cannot be
	// mapped, and a partitioned table only if it is partitioned by this column. Required.
	ID string

	// Order is the column whose ascending values are the outbox order. Default: ID. Order per key holds only if the values
	// ascend in the order in which one producer commits, as those of identity columns do; random UUIDs do not.
	Order string

	// EventID is the term of the identity that sinks and consumers see. Default: ID, as text.
	EventID string

	AggregateType string // term; default: the name of the table, for every row
	AggregateID   string // term; the key, unless there is a PartitionKey. Required without one
	EventType     string // term. Required

	// PartitionKey is the term of the key where that is not the aggregate id: the events of one key leave in order, and it is
	// the key of their messages. Without AggregateID it is the aggregate id as well.
	PartitionKey string

	AggregateVersion string // column of an integer; default: none
	Topic            string // term; default: the route decides
	ContentType      string // term; default: application/json, or application/octet-stream with PayloadBinary
	DedupKey         string // term, only shown; default: none

	// Payload is the term of the payload: text, JSON or bytes of any type. Its bytes are sent as they are; jsonb comes as
	// the database writes it. With Config.Payload PayloadJSON, the default, an event whose payload is no JSON is
	// malformed, and becomes DEAD. NULL is an empty payload. Required.
	Payload string

	// Headers is the term of a JSON object whose members become headers. Members that are null are left out, those that
	// are no strings are written as JSON.
	Headers string

	// HeaderTerms are further headers, by name. A header whose term is NULL is left out. They take precedence over the
	// members of Headers.
	HeaderTerms map[string]string

	Status      string // column of the state, of any text, enumeration or integer type
	PublishedAt string // column that is set when the event is published
	Words       Words  // the values of Status

	// Columns that are written, if they are named, so that the table's own tools show what becomes of an event. Times may
	// be of any type that holds a date and a time. NextAttemptAt is read, too: an event whose time lies in the future waits.
	RetryCount    string
	NextAttemptAt string
	LastError     string
	UpdatedAt     string
	PublishedTo   string

	// ClaimToken and ProcessingUntil are the columns of row claims. A table without them, or without Words.Processing,
	// can only be shared by leases (relay.ClaimShard).
	ClaimToken      string
	ProcessingUntil string

	// CreatedAt is the column of the time at which the event was added: a time, or an integer that counts seconds or
	// milliseconds since 1970. Default: none; then ages are unknown, and shown as 0.
	CreatedAt string

	// Filter is an SQL condition on their table; rows for which it is not true do not belong to the outbox. It is put into
	// every statement as it stands, in parentheses. Default: none.
	Filter string

	// TimeZone is that of columns of times without a zone: "UTC", an offset such as "+09:00", or a name that the
	// database knows. Default: "UTC".
	TimeZone string

	// SideSchema is the schema of the side tables, where theirs is not to be touched. It must exist. Default: the schema
	// of their table.
	SideSchema string
}

// Words are the values by which the column Mapping.Status tells the state of an event, as the database writes them as
// text (0 and 1 for a boolean of MySQL). They compare as the column does: where its collation ignores case, so do they. Pending and Published are required when there is such a column.
type Words struct {
	Pending    []string // the first is written when an event is sent again
	Processing string   // default: none; needed for row claims
	Published  string   // may be empty with Config.DeletePublished

	// Dead and Discarded are written when an event becomes DEAD and DISCARDED. Without Discarded, Dead is written for
	// both; without either, the row keeps its pending word, and the side table alone knows.
	Dead      string
	Discarded string
}
