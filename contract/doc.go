// Package contract says what the payload of each event type must look like, and stops an event that does not keep it:
// where it is made, in Outbox.Add, so that nobody ever receives it, and in a consumer, for what others publish.
//
//	contracts, err := contract.New(contract.Config{Fields: map[string][]contract.Field{
//		"OrderPlaced": {{Path: "/order", Kind: contract.String}, {Path: "/amount", Kind: contract.Integer}},
//	}})
//	outbox, err := postrider.New(postrider.Config{Dialect: postrider.PostgreSQL, Validate: contracts.Event})
//
// Contract.Message is the same for a consumer, and Contract.Handler for the handler of a consumer.Consumer. Fields is for the few things that a consumer cannot do without;
// package postriderjsonschema, a module of its own, makes checks of JSON Schemas.
package contract
