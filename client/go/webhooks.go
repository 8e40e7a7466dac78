package restante

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// tolerance is the largest difference between the time of a push and now.
	tolerance = 5 * time.Minute
	// signaturesMax is how many signatures of one push are verified.
	signaturesMax = 16
	secretPrefix  = "whsec_"
)

// Fault says why a signature is not valid.
type Fault string

const (
	Missing   Fault = "missing"
	Malformed Fault = "malformed"
	Stale     Fault = "stale"
	Wrong     Fault = "wrong"
)

// InvalidSignature is the error of a push that is not authentic.
type InvalidSignature struct {
	Fault   Fault
	message string
}

func (e *InvalidSignature) Error() string { return e.message }

// Push has the changes of a mailbox since the last acknowledged push.
type Push struct {
	// ID is the same for repeated pushes of the same changes: drop one that you know.
	ID      string
	Mailbox string
	// Cursor continues after this push, in WatchOptions.
	Cursor string
	// Notifications are in the order of their deposit.
	Notifications []Notification
	// Removed has the URIs of notifications that were removed.
	Removed []string
	// Deleted says whether the mailbox itself was deleted.
	Deleted bool
	// Test says whether it is a test event, which has no changes.
	Test bool
}

func keyOf(secret string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
	if err != nil || len(key) == 0 {
		return nil, errors.New("the secret of a registration is whsec_ and base64: copy all of " +
			"it from the answer that created the registration")
	}
	return key, nil
}

// VerifySignature verifies a signature of Standard Webhooks over the unchanged body. Give the old
// and the new secret while a secret changes. The error of a wrong signature is *InvalidSignature.
func VerifySignature(header http.Header, body []byte, secrets ...string) error {
	return verifyAt(time.Now(), header, body, secrets)
}

func verifyAt(now time.Time, header http.Header, body []byte, secrets []string) error {
	for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
		if header.Get(name) == "" {
			return &InvalidSignature{Missing, "there is no " + name}
		}
	}
	stamp := header.Get("webhook-timestamp")
	seconds, err := strconv.ParseUint(stamp, 10, 40)
	if err != nil {
		return &InvalidSignature{Malformed, "webhook-timestamp is no time in seconds"}
	}
	if now.Sub(time.Unix(int64(seconds), 0)).Abs() > tolerance {
		return &InvalidSignature{Stale, "webhook-timestamp is too far from now"}
	}
	given := strings.Split(header.Get("webhook-signature"), " ")
	isRight := false
	for _, secret := range secrets {
		key, err := keyOf(secret)
		if err != nil {
			return err
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(header.Get("webhook-id") + "." + stamp + "."))
		mac.Write(body)
		expected := mac.Sum(nil)
		// All pairs, whichever is right: the time that this takes reveals nothing.
		for _, one := range given[:min(len(given), signaturesMax)] {
			text, isKnown := strings.CutPrefix(one, "v1,")
			signature, err := base64.StdEncoding.DecodeString(text)
			if isKnown && err == nil && hmac.Equal(expected, signature) {
				isRight = true
			}
		}
	}
	if !isRight {
		return &InvalidSignature{Wrong, "no signature matches the body and a secret"}
	}
	return nil
}

// VerifyPush verifies a push of a registration in the native form, and reads it.
func VerifyPush(header http.Header, body []byte, secrets ...string) (Push, error) {
	if err := VerifySignature(header, body, secrets...); err != nil {
		return Push{}, err
	}
	root, err := parseDocument(string(body))
	if err != nil {
		return Push{}, err
	}
	push := Push{
		ID:      header.Get("webhook-id"),
		Mailbox: root.Attributes["mailbox"],
		Cursor:  root.Attributes["time"],
		Test:    root.Attributes["test"] == "true",
	}
	for _, child := range root.Children {
		switch child.Name {
		case "notification":
			notification, err := notificationOf(child, "")
			if err != nil {
				return Push{}, err
			}
			push.Notifications = append(push.Notifications, notification)
		case "removed":
			push.Removed = append(push.Removed, child.Attributes["href"])
		case "deleted":
			push.Deleted = true
		}
	}
	return push, nil
}
