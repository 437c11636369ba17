package mcp

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image"
	_ "image/gif" // the formats whose size is read
	_ "image/jpeg"
	_ "image/png"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/tool"
)

const (
	maxParts  = 1_000
	maxImage  = 5_000_000 // bytes, as providers take them
	maxPixels = 8_000     // of a side
)

// result is what a server's answer means to a model.
func (s *server) result(ctx context.Context, res *sdk.CallToolResult) tool.Result {
	if res.NeedsInput() {
		return tool.Result{IsError: true, Content: []message.Block{message.Text(
			"Error: the MCP server " + s.Name + " asks for input, which is not supported")}}
	}
	out := tool.Result{IsError: res.IsError}
	parts := res.Content
	if len(parts) > maxParts {
		parts = parts[:maxParts]
	}
	for _, part := range parts {
		out.Content = append(out.Content, s.block(ctx, part))
	}
	if n := len(res.Content) - len(parts); n > 0 {
		out.Content = append(out.Content, message.Text(fmt.Sprintf("[%d more parts were left out]", n)))
	}
	if len(out.Content) == 0 && res.StructuredContent != nil {
		if text, err := jsonwire.Marshal(res.StructuredContent); err == nil {
			out.Content = []message.Block{message.Text(string(text))}
		} else {
			s.log.Warn("structured content of an mcp server cannot be written", "server", s.Name, "err", err)
		}
	}
	return out
}

func (s *server) block(ctx context.Context, part sdk.Content) message.Block {
	switch c := part.(type) {
	case *sdk.TextContent:
		return message.Text(c.Text)
	case *sdk.ImageContent:
		return s.image(ctx, c.Data, c.MIMEType)
	case *sdk.AudioContent:
		return note("audio", c.MIMEType, fmt.Sprintf("%d bytes", len(c.Data)), "not shown")
	case *sdk.ResourceLink:
		return note("link", c.Name, c.URI, c.MIMEType, c.Description)
	case *sdk.EmbeddedResource:
		return s.resource(ctx, c.Resource)
	}
	return note("content of an unknown kind", "not shown")
}

func (s *server) resource(ctx context.Context, r *sdk.ResourceContents) message.Block {
	switch {
	case r == nil:
		return note("resource", "empty")
	case r.Blob == nil:
		return message.Text("[resource " + oneLine(r.URI) + "]\n" + r.Text)
	case strings.HasPrefix(r.MIMEType, "image/"):
		return s.image(ctx, r.Blob, r.MIMEType)
	}
	return note("resource "+r.URI, r.MIMEType, fmt.Sprintf("%d bytes", len(r.Blob)), "not shown")
}

// image keeps an image and refers to it. What it is, its bytes say.
func (s *server) image(ctx context.Context, data []byte, said string) message.Block {
	size := fmt.Sprintf("%d bytes", len(data))
	if len(data) > maxImage {
		return note("image", said, size, fmt.Sprintf("not shown: over %d bytes", maxImage))
	}
	cfg, format, err := image.DecodeConfig(bytes.NewReader(data))
	if w, h, ok := webpSize(data); ok {
		cfg.Width, cfg.Height, format, err = w, h, "webp", nil
	}
	switch {
	case err != nil:
		return note("image", said, size, "not shown: it is no PNG, JPEG, GIF or WebP")
	case cfg.Width < 1 || cfg.Height < 1 || cfg.Width > maxPixels || cfg.Height > maxPixels:
		return note("image", "image/"+format, fmt.Sprintf("%d x %d", cfg.Width, cfg.Height), fmt.Sprintf("not shown: a side has 1 to %d pixels", maxPixels))
	case s.o.Objects == nil:
		return note("image", "image/"+format, fmt.Sprintf("%d x %d", cfg.Width, cfg.Height), size, "not shown: this session keeps no images")
	}
	id, err := s.o.Objects.Put(ctx, data)
	if err != nil {
		s.log.Warn("an image of an mcp server cannot be kept", "server", s.Name, "err", err)
		return note("image", "image/"+format, size, "not shown: it could not be kept")
	}
	ref := jsonwire.AppendStringMember([]byte{'{'}, "attachmentId", id)
	ref = jsonwire.AppendStringMember(ref, "mediaType", "image/"+format)
	ref = jsonwire.AppendIntMember(ref, "width", int64(cfg.Width))
	ref = jsonwire.AppendIntMember(ref, "height", int64(cfg.Height))
	ref = jsonwire.AppendIntMember(ref, "bytes", int64(len(data)))
	return message.Block{Type: message.ImageBlock, Attachment: json.RawMessage(append(ref, '}'))}
}

// webpSize reads the size of a WebP image from its first chunk: lossy, lossless
// or extended.
func webpSize(b []byte) (w, h int, ok bool) {
	if len(b) < 30 || string(b[:4]) != "RIFF" || string(b[8:12]) != "WEBP" {
		return 0, 0, false
	}
	le := binary.LittleEndian
	switch string(b[12:16]) {
	case "VP8 ":
		const start = "\x9d\x01\x2a" // of a key frame, behind its tag
		return int(le.Uint16(b[26:]) & 0x3fff), int(le.Uint16(b[28:]) & 0x3fff), string(b[23:26]) == start
	case "VP8L":
		bits := le.Uint32(b[21:])
		return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1, b[20] == 0x2f
	case "VP8X":
		return int(le.Uint32(b[24:])&0xffffff) + 1, int(le.Uint32(b[26:])>>8) + 1, true
	}
	return 0, 0, false
}

// note stands for content that a model is not given.
func note(parts ...string) message.Block {
	var said []string
	for _, p := range parts {
		if p = oneLine(p); p != "" {
			said = append(said, p)
		}
	}
	return message.Text("[" + strings.Join(said, ", ") + "]")
}

// oneLine is a text of a server inside a line of ours.
func oneLine(s string) string {
	return clip(printable(strings.Join(strings.Fields(s), " ")), 500)
}
