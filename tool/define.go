package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Spec describes a tool that Define makes.
type Spec[A any] struct {
	Name        string
	Description string
	Class       Class
	Parallel    bool
	Run         func(ctx context.Context, call Call, args A) (Result, error)
	// Preview, when set, makes the tool a Previewer.
	Preview func(ctx context.Context, call Call, args A) (Preview, error)
}

// Define makes a tool whose schema comes from the Go struct A: members from
// json tags, descriptions from jsonschema tags, members marked omitempty are
// optional, others must be given, lists not as null. It fails when A is no struct that JSON Schema
// can describe.
func Define[A any](spec Spec[A]) (Tool, error) {
	schema, err := jsonschema.For[A](nil)
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", spec.Name, err)
	}
	needLists(schema)
	text, err := schema.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", spec.Name, err)
	}
	d := &defined[A]{spec: spec, schema: jsonwire.Compact(text)}
	if spec.Preview == nil {
		return d, nil
	}
	return &previewed[A]{d}, nil
}

// needLists takes null from the lists that a call must give: a nil slice is
// written as null in Go, but no model should send one.
func needLists(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	for name, member := range s.Properties {
		if slices.Contains(s.Required, name) && slices.Equal(member.Types, []string{"null", "array"}) {
			member.Type, member.Types = "array", nil
		}
		needLists(member)
	}
	needLists(s.Items)
}

type defined[A any] struct {
	spec   Spec[A]
	schema json.RawMessage
}

func (d *defined[A]) Name() string            { return d.spec.Name }
func (d *defined[A]) Description() string     { return d.spec.Description }
func (d *defined[A]) Schema() json.RawMessage { return d.schema }
func (d *defined[A]) Class() Class            { return d.spec.Class }
func (d *defined[A]) Parallel() bool          { return d.spec.Parallel }

func (d *defined[A]) Run(ctx context.Context, call Call) (Result, error) {
	args, err := d.args(call)
	if err != nil {
		return Result{}, err
	}
	return d.spec.Run(ctx, call, args)
}

func (d *defined[A]) args(call Call) (A, error) {
	var args A
	if err := jsonwire.Unmarshal(call.Arguments, &args); err != nil {
		return args, InvalidArgs(err.Error())
	}
	return args, nil
}

type previewed[A any] struct{ *defined[A] }

func (p *previewed[A]) Preview(ctx context.Context, call Call) (Preview, error) {
	args, err := p.args(call)
	if err != nil {
		return Preview{}, err
	}
	return p.spec.Preview(ctx, call, args)
}
