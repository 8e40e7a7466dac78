package restante

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// depthMax is the deepest document of the service.
const depthMax = 128

// Element is an element of a document. Names have their prefixes: what strangers add to an item
// must not have the names of its fields.
type Element struct {
	Name       string
	Attributes map[string]string
	// Text is all text between the children.
	Text     string
	Children []Element
}

// Child is the first child of this name.
func (e Element) Child(name string) (Element, bool) {
	for _, child := range e.Children {
		if child.Name == name {
			return child, true
		}
	}
	return Element{}, false
}

// Notification is a notification in a mailbox.
type Notification struct {
	// Href is its URI.
	Href string
	// Received is when it was deposited, RFC 3339, by the service's clock.
	Received    string
	Description string
	// URL is the URI of the message.
	URL string
	// Password is that of the message; empty for none.
	Password string
	// Item is all of what its sender wrote.
	Item Element
	// Cursor continues after this notification; only a watch sets it.
	Cursor string
}

func unexpected(format string, values ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrUnexpectedAnswer}, values...)...)
}

func nameOf(name xml.Name) string {
	if name.Space == "" {
		return name.Local
	}
	return name.Space + ":" + name.Local
}

// parseDocument reads a document of the service, which has no document type.
func parseDocument(text string) (Element, error) {
	decoder := xml.NewDecoder(strings.NewReader(text))
	// The root is the only child of the first element.
	open := []Element{{}}
	// The text of each open element; joining strings would copy it for each child.
	texts := []*strings.Builder{{}}
	for {
		// Not Token, which replaces prefixes.
		token, err := decoder.RawToken()
		if err == io.EOF {
			break
		}
		if err != nil {
			return Element{}, unexpected("the document is not XML: %v", err)
		}
		last := &open[len(open)-1]
		switch part := token.(type) {
		case xml.Directive:
			return Element{}, unexpected("the document has a document type")
		case xml.CharData:
			texts[len(texts)-1].Write(part)
		case xml.StartElement:
			if len(open) > depthMax {
				return Element{}, unexpected("the document is too deep")
			}
			element := Element{Name: nameOf(part.Name), Attributes: map[string]string{}}
			for _, attribute := range part.Attr {
				element.Attributes[nameOf(attribute.Name)] = attribute.Value
			}
			open = append(open, element)
			texts = append(texts, &strings.Builder{})
		case xml.EndElement:
			if len(open) == 1 || last.Name != nameOf(part.Name) {
				return Element{}, unexpected("an element of the document does not end")
			}
			last.Text = texts[len(texts)-1].String()
			texts = texts[:len(texts)-1]
			parent := &open[len(open)-2]
			parent.Children = append(parent.Children, *last)
			open = open[:len(open)-1]
		}
	}
	if len(open) != 1 || len(open[0].Children) != 1 {
		return Element{}, unexpected("the document is not complete")
	}
	return open[0].Children[0], nil
}

func notificationOf(element Element, cursor string) (Notification, error) {
	item, hasItem := element.Child("item")
	description, hasDescription := item.Child("description")
	link, hasURL := item.Child("url")
	href := element.Attributes["href"]
	if !hasItem || !hasDescription || !hasURL || href == "" {
		return Notification{}, unexpected("the element is no notification")
	}
	password, _ := item.Child("password")
	return Notification{
		Href:        href,
		Received:    element.Attributes["received"],
		Description: description.Text,
		URL:         link.Text,
		Password:    password.Text,
		Item:        item,
		Cursor:      cursor,
	}, nil
}
