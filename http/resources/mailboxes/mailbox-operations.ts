/** What mailboxes and the notifications in them take and answer (A2, A9 to A11). */
import { linkedDataType } from "../../formats/index.ts"
import { type AnswerDescription, type Area, attributes, type BodyDescription, button, digits,
  document, elementText, events, feeds, file, formBody, formOf, list, nothing, object, oneOf, open,
  paging, ref, root, text, time, uri, view } from "../../formats/openapi/index.ts"

const settings = {
  deposit: oneOf("anyone", "accounts"),
  retention: { type: "string", description: "A duration of ISO 8601 such as P30D." },
  fetch: oneOf("never", "eager"),
  "fetch-limit": { type: ["string", "integer"], description: "Bytes." },
  receipts: oneOf("none", "received", "retrieved")
}

const inlined = {
  ...object({
    ...attributes({ type: text, encoding: oneOf("base64") }),
    ...elementText("The content itself.")
  }),
  description: "The content itself; then `url` may be empty."
}

const item = open(object({
  description: text,
  url: uri,
  password: text,
  content: { anyOf: [text, inlined] }
}, ["description"]))

/** Bodies and answers of Linked Data Notifications. */
const linkedData = (description: string) => ({
  [linkedDataType]: { type: ["object", "array"], description, additionalProperties: true }
})

const notificationForm = { description: text, url: uri, content: text }

const asDocument = document("NewNotification", {
  form: formOf(notificationForm, ["description"])
})

const deposited: BodyDescription = {
  ...asDocument,
  content: { ...asDocument.content, ...linkedData("A notification in JSON-LD.") }
}

const kept = (description: string): AnswerDescription => ({
  description,
  content: { "text/html": text },
  headers: ["Location", "Link"]
})

export const mailboxOperations: Area = {
  tag: "mailboxes",
  about: "Where notifications wait until they are called for.",
  schemas: {
    NewMailbox: root("mailbox", { name: text, title: text, ...settings }),
    Mailbox: root("mailbox", {
      ...attributes({ href: uri }),
      title: text,
      password: { type: "string", description: "Shown in the one answer that makes it." },
      shared: {
        ...object(attributes({ href: uri }), ["href"]),
        description: "A URI that is read without a password; shown with it."
      },
      ...settings
    }, ["href"]),
    MailboxListing: root("mailbox", {
      ...attributes({ href: uri, title: text, time: text }),
      ...settings,
      notification: list(ref("Notification"))
    }, ["href", "title", "time", "notification"]),
    Mailboxes: root("mailboxes", {
      mailbox: list(
        object(
          attributes({ href: uri, title: text, notifications: digits }),
          ["href", "title", "notifications"]
        )
      )
    }, ["mailbox"]),
    NewNotification: open(root("notification", { item }, ["item"])),
    Notification: open(root("notification", {
      ...attributes({ href: uri, received: time, mailbox: uri }),
      item: open(object({ description: text, url: uri, password: text, from: uri })),
      cached: object(attributes({ href: uri, type: text, length: digits }), ["href"])
    }, ["href", "received", "item"]))
  },
  operations: {
    "GET /mailbox.js": file("getMailboxScript", "The script of its page", "text/javascript"),
    "GET /mailboxes": {
      id: "listMailboxes",
      summary: "The caller's own mailboxes, by name",
      needs: "account",
      query: paging,
      answers: { 200: view("Mailboxes", "A page of them") }
    },
    "POST /mailboxes": {
      id: "openMailbox",
      summary: "Opens a mailbox (A9)",
      needs: "account",
      headers: ["Slug"],
      body: document("NewMailbox", {
        isOptional: true,
        form: formOf(["name", "title", ...Object.keys(settings)])
      }),
      problems: ["gone"],
      answers: { 201: view("Mailbox", "The mailbox, with its secrets", ["Location", "Link"]) }
    },
    "GET /mailboxes/{mailbox}": {
      id: "readMailbox",
      summary: "The notifications in it, oldest first (A11)",
      description: "With `Prefer: wait=30` a long poll; as text/event-stream live. Without "
        + "credentials a browser gets the page to deposit at.",
      needs: "reader",
      headers: ["Prefer", "Last-Event-ID"],
      query: {
        since: {
          description: "The `time` of an earlier answer, or a time of RFC 3339.",
          schema: text
        },
        before: {
          description: "In a feed: only what is older than this entry.",
          schema: digits
        },
        limit: paging["limit"] ?? { description: "", schema: text },
        read: { description: "For a browser that is to be asked for a password.", schema: text }
      },
      answers: {
        200: view("MailboxListing", "A page of them", [
          "Link",
          "Preference-Applied?",
          "Accept-Post?",
          "Last-Modified?"
        ], {
          ...feeds,
          ...linkedData("An inbox (W3C LDN §3.3), the newest first: its URIs in `contains`."),
          ...events("An event `notification` for each, its data the notification as XML.")
        })
      }
    },
    "POST /mailboxes/{mailbox}": {
      id: "deposit",
      summary: "Deposits a notification (A2)",
      needs: "anyone",
      headers: ["traceparent"],
      body: deposited,
      problems: ["unauthenticated", "gone"],
      answers: {
        201: kept("JSON-LD is kept until it is retrieved (W3C LDN §3.3)"),
        202: kept("Kept until it is retrieved. A browser gets a page")
      }
    },
    "PUT /mailboxes/{mailbox}": {
      id: "configureMailbox",
      summary: "Replaces the settings; what is left out has its default",
      needs: "role",
      body: document("NewMailbox"),
      problems: ["gone", "conflict"],
      answers: { 200: view("Mailbox", "The mailbox as it is now", ["Link"]) }
    },
    "DELETE /mailboxes/{mailbox}": {
      id: "deleteMailbox",
      summary: "Removes the mailbox with all that is in it (A10)",
      needs: "role",
      problems: ["gone", "conflict"],
      answers: { 204: nothing("It is removed") }
    },
    "POST /mailboxes/{mailbox}/password": {
      id: "renewSecrets",
      summary: "Changes both secrets of the mailbox",
      needs: "role",
      body: button,
      problems: ["gone"],
      answers: { 200: view("Mailbox", "The new secrets, shown this once", ["Link"]) }
    },
    "GET /mailboxes/{mailbox}/notifications/{notification}": {
      id: "getNotification",
      summary: "One notification",
      needs: "reader",
      answers: {
        200: view("Notification", "The notification", ["Link"], {
          "text/xml+rss": ref("Notification"),
          ...linkedData("The JSON-LD as it came, or an `Announce` of Activity Streams.")
        })
      }
    },
    "POST /mailboxes/{mailbox}/notifications/{notification}": {
      id: "deleteNotificationByForm",
      summary: "The same as DELETE, for a page's form with `method=delete`",
      needs: "reader",
      body: formBody(formOf({ method: oneOf("delete") }, ["method"])),
      problems: ["precondition-failed"],
      answers: {
        303: nothing("To the mailbox, without it", ["Location", "Cache-Control", "Link"])
      }
    },
    "DELETE /mailboxes/{mailbox}/notifications/{notification}": {
      id: "deleteNotification",
      summary: "Removes one notification",
      needs: "reader",
      answers: { 204: nothing("It is removed", ["Link"]) }
    }
  }
}
