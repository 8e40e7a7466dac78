// Package restante is a client of restante. The operations of the service are generated from its
// OpenAPI document; what a document does not describe is written by hand: following a mailbox, the
// check of signatures, and errors.
package restante

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"restante/generated"
)

// problemBytesMax is the longest document of a problem that is read.
const problemBytesMax = 64 * 1024

// redirectsMax is how many redirects a request follows.
const redirectsMax = 10

// Client has a method for each operation, from the generated client. An answer with an error status
// is an error, a *Problem.
type Client struct {
	*generated.ClientWithResponses
	doer *doer
	base *url.URL
}

// Connect returns a client of the service at this address, which sends the token of an account
// there and nowhere else. Without a token it is anonymous.
func Connect(address, token string) (*Client, error) {
	base, err := url.Parse(strings.TrimRight(address, "/"))
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, fmt.Errorf("%q is no address of a service: give one such as "+
			"http://localhost:8080", address)
	}
	sent := &doer{token: token, http: &http.Client{CheckRedirect: leavingWithoutToken(base)}}
	operations, err := generated.NewClientWithResponses(base.String(),
		generated.WithHTTPClient(sent))
	if err != nil {
		return nil, err
	}
	return &Client{ClientWithResponses: operations, doer: sent, base: base}, nil
}

// leavingWithoutToken follows redirects, and takes the credentials from a request that leaves the
// service: net/http sends them to every port and subdomain of its host, such as the origin of
// content.
func leavingWithoutToken(base *url.URL) func(*http.Request, []*http.Request) error {
	return func(request *http.Request, passed []*http.Request) error {
		if len(passed) >= redirectsMax {
			return fmt.Errorf("%s was redirected %d times: look where it leads", passed[0].URL,
				redirectsMax)
		}
		if request.URL.Scheme != base.Scheme || request.URL.Host != base.Host {
			request.Header.Del("Authorization")
		}
		return nil
	}
}

// doer sends requests with the token, and makes errors of answers that are problems.
type doer struct {
	token string
	http  *http.Client
}

func (d *doer) Do(request *http.Request) (*http.Response, error) {
	if d.token != "" && request.Header.Get("Authorization") == "" {
		request.Header.Set("Authorization", "Bearer "+d.token)
	}
	if request.Header.Get("Accept") == "" {
		// XML is the default of every document.
		request.Header.Set("Accept", "application/json, */*;q=0.1")
	}
	answer, err := d.http.Do(request)
	if err != nil || answer.StatusCode < 400 {
		return answer, err
	}
	defer answer.Body.Close()
	return nil, problemOf(answer)
}

// The problems that a program treats in its own way: errors.Is(err, restante.ErrGone).
var (
	ErrUnauthenticated = errors.New("the credentials are missing or wrong")
	ErrForbidden       = errors.New("the account may not do this")
	ErrNotFound        = errors.New("nothing has this URI")
	ErrConflict        = errors.New("the state of the resource does not allow it")
	ErrGone            = errors.New("the resource was deleted")
	ErrTooManyRequests = errors.New("too many requests")
	// ErrUnknownCursor: the position is of another mailbox, or from before a restore.
	ErrUnknownCursor = errors.New("the position is not known here")
	// ErrUnexpectedAnswer: the answer is not from restante, or its document is malformed.
	ErrUnexpectedAnswer = errors.New("the answer is not from restante")
)

// Problem is an answer with an error status (RFC 9457).
type Problem struct {
	Status int    `json:"-"`
	Type   string `json:"type"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	// RetryAfter is the pause that the service asks for; 0 for none.
	RetryAfter time.Duration `json:"-"`
}

func (p *Problem) Error() string {
	if p.Detail == "" {
		return fmt.Sprintf("%d %s", p.Status, p.Title)
	}
	return fmt.Sprintf("%d %s: %s", p.Status, p.Title, p.Detail)
}

// Is says whether the problem is one of the variables Err….
func (p *Problem) Is(target error) bool {
	switch target {
	case ErrUnauthenticated:
		return p.Status == http.StatusUnauthorized
	case ErrForbidden:
		return p.Status == http.StatusForbidden
	case ErrNotFound:
		return p.Status == http.StatusNotFound
	case ErrConflict:
		return p.Status == http.StatusConflict
	case ErrGone:
		return p.Status == http.StatusGone
	case ErrTooManyRequests:
		return p.Status == http.StatusTooManyRequests
	case ErrUnknownCursor:
		return strings.HasSuffix(p.Type, "/problems/unknown-cursor")
	}
	return false
}

func problemOf(answer *http.Response) *Problem {
	problem := &Problem{}
	body, _ := io.ReadAll(io.LimitReader(answer.Body, problemBytesMax))
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "application/problem+json") {
		_ = json.Unmarshal(body, problem)
	}
	if problem.Title == "" {
		problem.Title = http.StatusText(answer.StatusCode)
	}
	problem.Status = answer.StatusCode
	after, err := strconv.Atoi(answer.Header.Get("Retry-After"))
	if err == nil && after > 0 && after < 1_000_000 {
		problem.RetryAfter = time.Duration(after) * time.Second
	}
	return problem
}
