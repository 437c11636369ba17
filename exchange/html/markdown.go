package html

import (
	"bytes"
	"html"
	"regexp"
	"strings"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// deepest is how many levels of quotes and lists a text may have: a browser
// would follow any number, and slowly.
const deepest = 50

// reader knows no HTML: what looks like it is text like any other, and is shown.
var reader = goldmark.New(
	goldmark.WithParser(parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(parser.NewSetextHeadingParser(), 100),
			util.Prioritized(parser.NewThematicBreakParser(), 200),
			util.Prioritized(parser.NewListParser(), 300),
			util.Prioritized(parser.NewListItemParser(), 400),
			util.Prioritized(parser.NewCodeBlockParser(), 500),
			util.Prioritized(parser.NewATXHeadingParser(), 600),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
			util.Prioritized(parser.NewBlockquoteParser(), 800),
			util.Prioritized(parser.NewParagraphParser(), 1000)),
		parser.WithInlineParsers(
			util.Prioritized(parser.NewCodeSpanParser(), 100),
			util.Prioritized(parser.NewLinkParser(), 200),
			util.Prioritized(parser.NewAutoLinkParser(), 300),
			util.Prioritized(parser.NewEmphasisParser(), 500)),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
		parser.WithASTTransformers(util.Prioritized(below{}, 1000)))),
	goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.Linkify),
)

// fence lets through what messages may have, whatever the reader writes.
var fence = func() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "h3", "h4", "h5", "h6", "blockquote", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td",
		"em", "strong", "del", "code", "pre", "hr", "br")
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^language-[A-Za-z0-9+#.-]{1,40}$`)).OnElements("code")
	p.AllowAttrs("href").OnElements("a")
	p.AllowURLSchemes("http", "https", "mailto")
	p.AllowRelativeURLs(false)
	p.RequireParseableURLs(true)
	p.RequireNoReferrerOnLinks(true)
	p.AddTargetBlankToFullyQualifiedLinks(true)
	return p
}()

// below puts headings of a message below those of the page, and makes links of
// images: the page loads nothing.
type below struct{}

// Transform is parser.ASTTransformer's.
func (below) Transform(doc *ast.Document, _ text.Reader, _ parser.Context) {
	var images []*ast.Image
	ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			switch n := n.(type) {
			case *ast.Heading:
				n.Level = min(6, n.Level+3)
			case *ast.Image:
				images = append(images, n)
			}
		}
		return ast.WalkContinue, nil
	})
	for _, img := range images {
		link := ast.NewLink()
		link.Destination = img.Destination
		for c := img.FirstChild(); c != nil; {
			next := c.NextSibling()
			link.AppendChild(link, c)
			c = next
		}
		if link.FirstChild() == nil {
			link.AppendChild(link, ast.NewString([]byte("image")))
		}
		img.Parent().ReplaceChild(img.Parent(), img, link)
	}
}

// markdown is a text of a message as HTML. A text that is no Markdown that can
// be read, or one that is nested too deep, is shown as it is.
func markdown(s string) string {
	if !nested(s) {
		var out bytes.Buffer
		if err := reader.Convert([]byte(s), &out); err == nil {
			return fence.SanitizeReader(&out).String()
		}
	}
	return "<div class=\"plain\">" + html.EscapeString(s) + "</div>"
}

// nested reports a line with more marks of quotes and lists, or more opening
// brackets, than a person writes.
func nested(s string) bool {
	for line := range strings.SplitSeq(s, "\n") {
		marks := 0
		for i := 0; i < len(line) && strings.IndexByte(" \t>-*+", line[i]) >= 0; i++ {
			if line[i] == '>' || (line[i] == '-' || line[i] == '*' || line[i] == '+') && i+1 < len(line) && line[i+1] == ' ' {
				marks++
			}
		}
		if marks > deepest || strings.Count(line, "[") > 1000 || len(line)-len(strings.TrimLeft(line, " ")) > 500 {
			return true
		}
	}
	return false
}
