package llm

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// HeaderJSON is the header object that request/header logs: {config,
// adapterDefaults?, system?, tools?}, and in config provider, model,
// reasoningEffort?, temperature?, maxTokens?, stop?. What is empty is absent.
// Equal headers have equal bytes, so a change is found by comparing them.
// Parameters of tools must be JSON; see Check.
func HeaderJSON(cfg Config, system string, tools []Tool) json.RawMessage {
	dst := jsonwire.AppendMember([]byte{'{'}, "config")
	dst = append(dst, '{')
	dst = jsonwire.AppendStringMember(dst, "provider", cfg.Provider)
	dst = jsonwire.AppendStringMember(dst, "model", cfg.Model)
	if cfg.ReasoningEffort != "" {
		dst = jsonwire.AppendStringMember(dst, "reasoningEffort", cfg.ReasoningEffort)
	}
	if cfg.Temperature != nil {
		dst = AppendNumber(jsonwire.AppendMember(dst, "temperature"), *cfg.Temperature)
	}
	if cfg.MaxTokens > 0 {
		dst = jsonwire.AppendIntMember(dst, "maxTokens", cfg.MaxTokens)
	}
	if len(cfg.Stop) > 0 {
		dst = append(jsonwire.AppendMember(dst, "stop"), '[')
		for i, s := range cfg.Stop {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = jsonwire.AppendString(dst, s)
		}
		dst = append(dst, ']')
	}
	dst = append(dst, '}')
	effort := cfg.Defaults.ReasoningEffort && cfg.ReasoningEffort != ""
	limit := cfg.Defaults.MaxTokens && cfg.MaxTokens > 0
	if effort || limit {
		dst = append(jsonwire.AppendMember(dst, "adapterDefaults"), '{')
		if effort {
			dst = jsonwire.AppendRawMember(dst, "reasoningEffort", []byte("true"))
		}
		if limit {
			dst = jsonwire.AppendRawMember(dst, "maxTokens", []byte("true"))
		}
		dst = append(dst, '}')
	}
	if system != "" {
		dst = jsonwire.AppendStringMember(dst, "system", system)
	}
	if len(tools) > 0 {
		dst = appendTools(jsonwire.AppendMember(dst, "tools"), tools)
	}
	return append(dst, '}')
}

func appendTools(dst []byte, tools []Tool) []byte {
	dst = append(dst, '[')
	for i := range tools {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '{')
		dst = jsonwire.AppendStringMember(dst, "name", tools[i].Name)
		dst = jsonwire.AppendStringMember(dst, "description", tools[i].Description)
		dst = jsonwire.AppendRawMember(dst, "parameters", tools[i].Schema())
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// Schema is the tool's parameters without white space between their parts; the
// schema of an empty object when there are none.
func (t *Tool) Schema() json.RawMessage {
	if len(t.Parameters) == 0 {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return jsonwire.Compact(t.Parameters)
}

// AppendNumber appends f as JSON without an exponent; a number that JSON does
// not have is 0.
func AppendNumber(dst []byte, f float64) []byte {
	if f == 0 || f-f != 0 { // -0, NaN, an infinity
		return append(dst, '0')
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}

// ParseHeader reads a header object from a log. Members that it does not know
// are passed over. It fails when the text is not JSON or when config lacks its
// provider or its model.
func ParseHeader(raw []byte) (cfg Config, system string, tools []Tool, err error) {
	if err = jsonwire.Valid(raw); err != nil {
		return cfg, "", nil, fmt.Errorf("request header: %w", err)
	}
	for k, v := range jsonwire.Members(jsonwire.Get(raw, "config")) {
		switch jsonwire.Key(k) {
		case "provider":
			cfg.Provider, _ = jsonwire.Text(v)
		case "model":
			cfg.Model, _ = jsonwire.Text(v)
		case "reasoningEffort":
			cfg.ReasoningEffort, _ = jsonwire.Text(v)
		case "temperature":
			if f, err := strconv.ParseFloat(string(v), 64); err == nil {
				cfg.Temperature = &f
			}
		case "maxTokens":
			cfg.MaxTokens, _ = jsonwire.Int(v)
		case "stop":
			cfg.Stop = nil
			for e := range jsonwire.Elements(v) {
				if s, ok := jsonwire.Text(e); ok {
					cfg.Stop = append(cfg.Stop, s)
				}
			}
		}
	}
	if cfg.Provider == "" || cfg.Model == "" {
		return cfg, "", nil, fmt.Errorf("request header: config has no provider or no model")
	}
	marks := jsonwire.Get(raw, "adapterDefaults")
	cfg.Defaults = Defaults{
		ReasoningEffort: string(jsonwire.Get(marks, "reasoningEffort")) == "true",
		MaxTokens:       string(jsonwire.Get(marks, "maxTokens")) == "true",
	}
	system, _ = jsonwire.Text(jsonwire.Get(raw, "system"))
	for v := range jsonwire.Elements(jsonwire.Get(raw, "tools")) {
		var t Tool
		for k, m := range jsonwire.Members(v) {
			switch jsonwire.Key(k) {
			case "name":
				t.Name, _ = jsonwire.Text(m)
			case "description":
				t.Description, _ = jsonwire.Text(m)
			case "parameters":
				t.Parameters = json.RawMessage(m)
			}
		}
		tools = append(tools, t)
	}
	return cfg, system, tools, nil
}
