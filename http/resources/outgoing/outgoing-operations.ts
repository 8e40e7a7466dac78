/** What outgoing mailboxes take and answer (A5 to A8). */
import { type Area, attribute, attributes, type BodyDescription, button, digits, document, events,
  file, formBody, formOf, list, nothing, object, oneOf, open, paging, root, seeOther, text, time,
  uri, view } from "../../formats/openapi/index.ts"

const status = oneOf("sent", "waiting", "failed")

const recipient = object({
  ...attributes({ href: uri, attempts: digits, last: time, next: time, code: digits }),
  status: attribute(oneOf("success", "retry", "waiting", "failed")),
  location: attribute(text),
  problem: attribute(text)
}, ["status", "href", "attempts"])

const sentForm = formOf({
  to: { type: "string", description: "Recipients, a line each; the field may repeat." },
  from: text,
  description: text,
  url: uri,
  content: text
}, ["to", "description"])

const replayForm: BodyDescription = { ...formBody(formOf(["since"])), required: false }

export const outgoingOperations: Area = {
  tag: "outgoing",
  about: "Where notifications are sent from, with patience, to one or more mailboxes.",
  schemas: {
    SentNotification: open(root("notification", {
      from: attribute({ type: ["string", "boolean"], description: "Names the sender." }),
      to: { anyOf: [uri, list(uri)] },
      item: { type: "object", additionalProperties: true }
    }, ["to", "item"])),
    Outgoing: root("notification", {
      ...attributes({ href: uri, time, status }),
      recipient: list(recipient)
    }, ["href", "time", "status", "recipient"]),
    OutgoingListing: root("notifications", {
      ...attributes({ href: uri }),
      notification: list(object(attributes({ status, href: uri, time }), ["status", "href"]))
    }, ["href", "notification"]),
    Retried: root(
      "retried",
      attributes({ notifications: digits, recipients: digits, next: uri }),
      ["notifications", "recipients"]
    )
  },
  operations: {
    "GET /outgoing.js": file("getOutgoingScript", "The script of its page", "text/javascript"),
    "GET /outgoing": {
      id: "getOwnOutgoing",
      summary: "Leads to the caller's own outgoing mailbox",
      needs: "account",
      answers: { 303: nothing("Where it is", ["Location", "Vary", "Cache-Control"]) }
    },
    "POST /outgoing": {
      id: "sendFromOwn",
      summary: "Leads what is to be sent to the caller's own outgoing mailbox, which takes it",
      needs: "account",
      body: { ...formBody(sentForm), required: false, kind: "empty" },
      answers: { 307: nothing("Where it is", ["Location", "Vary", "Cache-Control"]) }
    },
    "GET /outgoing/{account}": {
      id: "listOutgoing",
      summary: "What was sent, newest first (A7)",
      needs: "role",
      query: { ...paging, status: { description: "Only those that stand so.", schema: status } },
      problems: ["gone"],
      answers: { 200: view("OutgoingListing", "A page of it") }
    },
    "POST /outgoing/{account}": {
      id: "send",
      summary: "Sends a notification to one or more mailboxes (A5)",
      needs: "role",
      headers: ["traceparent"],
      body: document("SentNotification", { form: sentForm }),
      problems: ["gone"],
      answers: {
        202: view("Outgoing", "Durably queued", ["Location", "Notification-Status"]),
        303: seeOther
      }
    },
    "POST /outgoing/{account}/retry": {
      id: "replay",
      summary: "Tries the failed recipients of a span of time again",
      needs: "role",
      query: {
        since: { description: "From when on, by RFC 3339; or in the form.", schema: text },
        after: { description: "The cursor of `next`.", schema: text }
      },
      body: replayForm,
      problems: ["gone"],
      answers: { 202: view("Retried", "How many are tried again") }
    },
    "GET /outgoing/{account}/{notification}": {
      id: "getOutgoing",
      summary: "How a notification stands with each of its recipients (A6)",
      description: "With `Prefer: wait=30` and If-None-Match a long poll for a change.",
      needs: "role",
      headers: ["Prefer", "Last-Event-ID"],
      problems: ["gone", "malformed"],
      answers: {
        200: view(
          "Outgoing",
          "How it stands",
          ["Notification-Status?", "Preference-Applied?"],
          events("An event `status` for each change, its data the document as XML.")
        )
      }
    },
    "POST /outgoing/{account}/{notification}": {
      id: "deleteOutgoingByForm",
      summary: "The same as DELETE, for a page's form with `method=delete`",
      needs: "role",
      body: formBody(formOf({ method: oneOf("delete") }, ["method"])),
      problems: ["gone", "precondition-failed"],
      answers: { 204: nothing("It is removed"), 303: seeOther }
    },
    "DELETE /outgoing/{account}/{notification}": {
      id: "deleteOutgoing",
      summary: "Removes it; no attempt starts afterwards (A8)",
      needs: "role",
      problems: ["gone", "conflict"],
      answers: { 204: nothing("It is removed") }
    },
    "POST /outgoing/{account}/{notification}/retry": {
      id: "retryOutgoing",
      summary: "Tries its failed recipients again",
      needs: "role",
      body: button,
      problems: ["gone"],
      answers: {
        202: view("Outgoing", "How it stands", ["Notification-Status"]),
        303: seeOther
      }
    }
  }
}
