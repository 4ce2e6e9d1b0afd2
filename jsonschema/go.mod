module github.com/postrider/postrider/jsonschema

go 1.26.0

require (
	github.com/postrider/postrider v0.0.0
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3
	golang.org/x/text v0.43.0
)

replace github.com/postrider/postrider => ..
