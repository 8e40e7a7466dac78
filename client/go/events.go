package restante

import (
	"bufio"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// eventBytesMax is the longest event of a live stream.
const eventBytesMax = 4 * 1024 * 1024

var retryField = regexp.MustCompile(`^[0-9]{1,9}$`)

type event struct {
	kind string
	data string
	// lastID is the last id, of this event or an earlier one.
	lastID string
}

// eventReader reads server-sent events by the rules of WHATWG HTML §9.2.6.
type eventReader struct {
	from   *bufio.Reader
	lastID string
	// retry is the pause before the next connection that the service asks for; 0 for none.
	retry   time.Duration
	skipsLF bool
	isBegun bool
}

// line returns the next line of at most this many bytes, without its end.
func (r *eventReader) line(bytesMax int) (string, error) {
	var line []byte
	for {
		one, err := r.from.ReadByte()
		if err != nil {
			return "", err
		}
		isSkipped := one == '\n' && r.skipsLF
		r.skipsLF = one == '\r'
		if isSkipped {
			continue
		}
		if one == '\n' || one == '\r' {
			break
		}
		if line = append(line, one); len(line) > bytesMax {
			return "", unexpected("an event is too long")
		}
	}
	text := strings.ToValidUTF8(string(line), "\ufffd")
	if !r.isBegun {
		r.isBegun = true
		text = strings.TrimPrefix(text, "\ufeff")
	}
	return text, nil
}

// next returns the next event that has data.
func (r *eventReader) next() (event, error) {
	var data []string
	kind := "message"
	left := eventBytesMax
	for {
		line, err := r.line(left)
		if err == io.ErrUnexpectedEOF {
			err = io.EOF
		}
		if err != nil {
			return event{}, err
		}
		left -= len(line)
		if line == "" {
			if data != nil {
				return event{kind, strings.Join(data, "\n"), r.lastID}, nil
			}
			kind, left = "message", eventBytesMax
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case name == "data":
			data = append(data, value)
		case name == "event":
			kind = value
		case name == "id" && !strings.Contains(value, "\x00"):
			r.lastID = value
		case name == "retry" && retryField.MatchString(value):
			millis, _ := strconv.Atoi(value)
			r.retry = time.Duration(millis) * time.Millisecond
		}
	}
}
