package restante

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

const (
	// attemptsMax are attempts of the first connection.
	attemptsMax = 5
	// backoffFirst and backoffMax are pauses between connections, doubled each time.
	backoffFirst = 250 * time.Millisecond
	backoffMax   = 10 * time.Second
	// retryMax is the longest pause that the service may ask for.
	retryMax = time.Minute
	// silenceMax is four heartbeats of the service: a stream that is silent for longer is broken.
	silenceMax = time.Minute
	// answerWithin is the time for the answer of any other request.
	answerWithin = 30 * time.Second
	// listingBytesMax is the longest listing without notifications.
	listingBytesMax = 64 * 1024
	// farFuture is later than any notification.
	farFuture = "9999-12-31T23:59:59Z"
)

var (
	mailboxName    = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*(~[A-Za-z0-9_-]+)?$`)
	notificationID = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)
)

// WatchOptions are choices of a watch; the zero value begins with the oldest notification.
type WatchOptions struct {
	// After is the Cursor of an earlier notification or push, any RFC 3339 time, or "now".
	After string
	// Acknowledge removes each notification when the loop continues with the next one, so that the
	// one at which a loop ends stays.
	Acknowledge bool
	// Password is that of the mailbox, in place of the token.
	Password string
	// OnConnection is called with nil when the stream is open, and with the error when it is lost.
	OnConnection func(error)
	// OnDiscarded is called when notifications after the position were removed by others.
	OnDiscarded func()
}

type watch struct {
	WatchOptions
	client *Client
	path   string
	cursor string
	isOpen bool
	// attempt is the number of the next connection, from 1.
	attempt int
	// handled is what the loop has handled, until it is removed.
	handled string
}

// Watch follows a mailbox, by its name or its URI, which may be the secret one: the loop gets its
// notifications in the order of deposit, then new ones as they come, each once, over lost
// connections and restarts of the service.
//
// The error that ends the loop is permanent: ErrGone when the mailbox is deleted, ErrUnknownCursor
// when After is not of this mailbox, the error of the context, or that of the first connection.
func (c *Client) Watch(
	ctx context.Context, mailbox string, options WatchOptions,
) iter.Seq2[Notification, error] {
	return func(yield func(Notification, error) bool) {
		path, err := c.mailboxPath(mailbox)
		if err != nil {
			yield(Notification{}, err)
			return
		}
		w := &watch{WatchOptions: options, client: c, path: path, attempt: 1}
		if w.After != "now" {
			w.cursor = w.After
		}
		if err := w.run(ctx, yield); err != nil {
			yield(Notification{}, err)
		}
	}
}

// mailboxPath is the path of a mailbox below the service: nobody else gets the token.
func (c *Client) mailboxPath(mailbox string) (string, error) {
	name := mailbox
	if strings.Contains(mailbox, "/") {
		uri, err := c.base.Parse(mailbox)
		name = ""
		if err == nil && uri.Scheme == c.base.Scheme && uri.Host == c.base.Host {
			name, _ = strings.CutPrefix(uri.Path, c.base.Path+"/mailboxes/")
		}
	}
	if !mailboxName.MatchString(name) {
		return "", fmt.Errorf("it is no mailbox of %s: give its name, or a URI that begins with it",
			c.base)
	}
	return "/mailboxes/" + name, nil
}

// errLoopEnded says that the loop has left.
var errLoopEnded = errors.New("the loop has ended")

func (w *watch) run(ctx context.Context, yield func(Notification, error) bool) error {
	for {
		retry, err := w.connection(ctx, yield)
		if errors.Is(err, errLoopEnded) {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if isFinal(err) || (!w.isOpen && w.attempt >= attemptsMax) {
			return err
		}
		w.report(err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pauseOf(err, w.attempt, retry)):
		}
		w.attempt++
	}
}

func (w *watch) report(err error) {
	if w.OnConnection != nil {
		w.OnConnection(err)
	}
}

// isFinal says whether a repetition cannot succeed.
func isFinal(err error) bool {
	var problem *Problem
	if errors.As(err, &problem) {
		status := problem.Status
		return status < 500 && status != http.StatusRequestTimeout &&
			status != http.StatusTooEarly && status != http.StatusTooManyRequests
	}
	return errors.Is(err, ErrUnexpectedAnswer)
}

// pauseOf is the pause before the next attempt.
func pauseOf(err error, attempt int, retry time.Duration) time.Duration {
	var problem *Problem
	if errors.As(err, &problem) && problem.RetryAfter > 0 {
		return min(problem.RetryAfter, retryMax)
	}
	// No proxy may have the loop go on without a pause.
	first := max(backoffFirst, min(retry, retryMax))
	longest := min(first<<min(attempt-1, 20), max(backoffMax, first))
	return longest/2 + rand.N(longest/2)
}

// connection gives the loop what one connection receives; also the pause that the service wants.
func (w *watch) connection(
	ctx context.Context, yield func(Notification, error) bool,
) (time.Duration, error) {
	if w.After == "now" && w.cursor == "" {
		if err := w.findNow(ctx); err != nil {
			return 0, err
		}
	}
	if err := w.removeHandled(ctx); err != nil {
		return 0, err
	}
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(answerWithin, cancel)
	defer silence.Stop()
	answer, err := w.open(within)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	w.isOpen, w.attempt = true, 1
	w.report(nil)
	alive := &heardReader{answer.Body, silence}
	events := &eventReader{from: bufio.NewReader(alive), lastID: w.cursor}
	for {
		one, err := events.next()
		if err != nil {
			return events.retry, err
		}
		// While the loop works nobody reads, and silence is no fault of the service.
		silence.Stop()
		if err := w.received(ctx, one, yield); err != nil {
			return events.retry, err
		}
		silence.Reset(silenceMax)
	}
}

// heardReader puts off the end of a connection at each piece that comes.
type heardReader struct {
	from    io.Reader
	silence *time.Timer
}

func (r *heardReader) Read(into []byte) (int, error) {
	r.silence.Reset(silenceMax)
	return r.from.Read(into)
}

func (w *watch) open(ctx context.Context) (*http.Response, error) {
	query := url.Values{}
	header := http.Header{"Accept": {"text/event-stream, application/problem+json;q=0.1"}}
	// The first position may be a time, which is not an event id.
	if w.cursor != "" && w.cursor == w.After {
		query.Set("since", w.cursor)
	} else if w.cursor != "" {
		header.Set("Last-Event-ID", w.cursor)
	}
	answer, err := w.send(ctx, http.MethodGet, w.path, query, header)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		answer.Body.Close()
		return nil, unexpected("the answer is no event stream")
	}
	return answer, nil
}

func (w *watch) send(
	ctx context.Context, method, path string, query url.Values, header http.Header,
) (*http.Response, error) {
	uri := w.client.base.String() + path
	if len(query) > 0 {
		uri += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, method, uri, nil)
	if err != nil {
		return nil, err
	}
	request.Header = header
	if w.Password != "" {
		// The user name is not regarded.
		request.SetBasicAuth("reader", w.Password)
	}
	return w.client.doer.Do(request)
}

// received gives the loop the notification of an event.
func (w *watch) received(
	ctx context.Context, one event, yield func(Notification, error) bool,
) error {
	switch one.kind {
	case "gone":
		return &Problem{Status: http.StatusGone, Title: "Deleted",
			Detail: "the mailbox has been deleted"}
	case "position":
		position, err := parseDocument(one.data)
		if err != nil {
			return err
		}
		if position.Attributes["state"] != "discarded" {
			return &Problem{Status: http.StatusBadRequest, Type: "/problems/unknown-cursor",
				Title: "The position is not known here", Detail: position.Attributes["detail"]}
		}
		w.cursor = one.lastID
		if w.OnDiscarded != nil {
			w.OnDiscarded()
		}
	case "notification":
		document, err := parseDocument(one.data)
		if err != nil {
			return err
		}
		notification, err := notificationOf(document, one.lastID)
		if err != nil {
			return err
		}
		w.cursor = one.lastID
		if !yield(notification, nil) {
			return errLoopEnded
		}
		if w.Acknowledge {
			w.handled = notification.Href
			return w.removeHandled(ctx)
		}
	}
	return nil
}

// removeHandled removes the handled notification; somebody else may have removed it already.
func (w *watch) removeHandled(ctx context.Context) error {
	if w.handled == "" {
		return nil
	}
	_, id, _ := strings.Cut(w.handled, "/notifications/")
	if !notificationID.MatchString(id) {
		return unexpected("the URI of a notification leads elsewhere")
	}
	within, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	answer, err := w.send(within, http.MethodDelete, w.path+"/notifications/"+id, nil, http.Header{})
	if err == nil {
		answer.Body.Close()
	} else if !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrGone) {
		return err
	}
	w.handled = ""
	return nil
}

// findNow sets the cursor after the newest notification.
func (w *watch) findNow(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	query := url.Values{"since": {farFuture}, "limit": {"1"}}
	header := http.Header{"Accept": {"application/json"}}
	answer, err := w.send(within, http.MethodGet, w.path, query, header)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	listing := struct{ Time string }{}
	body := io.LimitReader(answer.Body, listingBytesMax)
	if json.NewDecoder(body).Decode(&listing) != nil || listing.Time == "" {
		return unexpected("the answer is no listing of a mailbox")
	}
	w.cursor = listing.Time
	return nil
}
