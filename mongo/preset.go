package mongo

import "slices"

// Preset describes a collection that is often met.
type Preset struct {
	Name       string // what it is called in a configuration
	About      string // one line about where the collection comes from
	Collection string // the name that the collection has unless its user gave it another
	Mapping    Mapping
}

// FindPreset returns the preset of the name. The caller may change its Mapping.
func FindPreset(name string) (preset Preset, ok bool) {
	presets := Presets()
	i := slices.IndexFunc(presets, func(p Preset) bool { return p.Name == name })
	if i < 0 {
		return Preset{}, false
	}
	return presets[i], true
}

// Presets returns all presets.
func Presets() []Preset {
	return []Preset{{
		Name:       "domain-events",
		About:      "documents with domain, objectId, eventType, attempts and leaseExpiresAt, as NestJS services write them",
		Collection: "outbox",
		Mapping: Mapping{
			AggregateType: "domain", AggregateID: "objectId", EventType: "eventType", Payload: "payload", DedupKey: "dedupKey",
			Status: "status", RetryCount: "attempts", NextAttemptAt: "nextAttemptAt",
			ClaimToken: "lockedBy", ProcessingUntil: "leaseExpiresAt",
			Words: Words{Pending: []string{"PENDING"}, Published: "SENT", Dead: "FAILED"},
		},
	}}
}
