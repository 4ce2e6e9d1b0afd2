package postriderjsonschema_test

import (
	"fmt"
	"testing/fstest"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/contract"
	postriderjsonschema "github.com/postrider/postrider/jsonschema"
)

// Every file of the folder is the schema of the event type that it is named after. An application embeds the folder.
func Example() {
	schemas := fstest.MapFS{"OrderPlaced.json": {Data: []byte(`{
		"type": "object",
		"required": ["order"],
		"properties": {"amount": {"type": "integer"}}
	}`)}}
	files, err := postriderjsonschema.Files(schemas)
	if err != nil {
		panic(err)
	}
	checks, err := postriderjsonschema.Compile(schemas, files)
	if err != nil {
		panic(err)
	}
	contracts, err := contract.New(contract.Config{Checks: checks, Strict: true})
	if err != nil {
		panic(err)
	}
	err = contracts.Event(postrider.Event{Type: "OrderPlaced", Payload: []byte(`{"amount": "12.50"}`)})
	fmt.Println(err)
	// Output:
	// event 0: payload lacks "order"
	// event 0: payload /amount is of type string, not integer
}
