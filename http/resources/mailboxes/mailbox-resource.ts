/** The operations of mailboxes and their notifications (A2, A9 to A11). */
import { linkedDataType } from "../../formats/index.ts"
import { attributes, buttonRequestBody, dateTime, describingFormFields, digits, discardedSchema,
  documentRequestBody, elementOrAttribute, elementText, emptyResponse, eventContent, extensible,
  feedContent, forbidden, formRequestBody, formSchema, ignored, list, object, oneOf, pageVersion,
  pagingParameters, patternUpTo, ref, type RequestBodyDescription, type ResponseDescription,
  rootElement, type Schema, type ServiceDescription, sinceParameters, slug, slugPattern, text, uri,
  viewResponse, visibleText } from "../../formats/openapi/index.ts"
import { searchCharsMax, titleCharsMax, webhookSecretCharsMax, webhookSecretCharsMin,
  webhookTemplateCharsMax } from "../../limits.ts"
import type { ResourceDefinition, ResourceOperation } from "../../resource.ts"
import { acceptPost, authorizeDeposit, directDeposit, plainTextType,
  postMailbox } from "./deposit/index.ts"
import { deleteMailbox, getMailboxes, listingScopes, postMailboxes, postPassword, postSettingsForm,
  putMailbox } from "./mailbox-collection.ts"
import { deleteNotification, getMailbox, getNotification,
  postNotificationForm } from "./mailbox-reading.ts"
import { authorizeReader } from "./mailbox-access.ts"
import { defaultRetention } from "./mailbox-settings.ts"
import { depositForm, removalParameter } from "./mailbox-views.ts"
import { deleteRead, postReadForm, postReadUpToForm, putRead, putReadUpTo } from "./read-marks.ts"
import { openForm, removalForm, settingsForm, webhookForm } from "./settings-views.ts"
import { deleteWebhookSecret, postWebhookForm, putWebhookSecret } from "./webhook-settings.ts"
import { senderNames, templatePattern } from "./webhook-template.ts"

/** One unit or more, in this order; or nothing, for the default. */
const durationPattern = (() => {
  const n = "[0-9]+"
  const time = `T(${n}H(${n}M)?(${n}S)?|${n}M(${n}S)?|${n}S)`
  const date = `${n}Y(${n}M)?(${n}D)?|${n}M(${n}D)?|${n}D`
  return `^(P(${n}W|(${date})(${time})?|${time}))?$`
})()

const title = { ...text, maxLength: titleCharsMax }

/** The service chooses a name where it is empty. */
const optionalName = { ...slug, pattern: `^$|${slugPattern}` }

const fetchLimitDigitsMax = 15

const fetchLimitMax = 10 ** fetchLimitDigitsMax - 1

const template = (description: string): Schema => ({
  type: "string",
  pattern: templatePattern.replaceAll("[^", `[^${forbidden}`),
  maxLength: webhookTemplateCharsMax,
  description
})

const settings = {
  deposit: oneOf("anyone", "accounts"),
  retention: {
    type: "string",
    pattern: durationPattern,
    description: "A duration of ISO 8601 such as P30D, at most 100 years."
  },
  fetch: oneOf("never", "eager"),
  "fetch-limit": {
    type: ["string", "integer"],
    pattern: `^[0-9]{0,${fetchLimitDigitsMax}}$`,
    minimum: 0,
    maximum: fetchLimitMax,
    description: "Bytes."
  },
  receipts: oneOf("none", "received", "retrieved"),
  webhook: template(
    `The description of a webhook's notification, in which {/pointer} is a value of its JSON; or ${
      senderNames.join(", ")
    }. Without it the mailbox takes no webhooks.`
  ),
  "webhook-link": template("The page that the notification links to."),
  "webhook-priority": template("Its priority, 1 to 5 or a word."),
  "webhook-tags": template("Its tags, with commas.")
}

/**
 * The settings as clients send them. A mailbox may still have a larger limit, of the time when
 * content could be larger.
 */
const newSettings = ({ contentBytesMax }: ServiceDescription) => {
  const maximum = Math.min(contentBytesMax, fetchLimitMax)
  const pattern = patternUpTo(maximum, fetchLimitDigitsMax)
  return { ...settings, "fetch-limit": { ...settings["fetch-limit"], pattern, maximum } }
}

const mediaType = { type: "string", pattern: "^[!#-+.-9A-Z^-z|~-]+/[!#-+.-9A-Z^-z|~-]+$" }

const inlined = {
  ...object({
    ...attributes({ type: mediaType, encoding: oneOf("base64") }),
    ...elementText("The content itself.")
  }, ["type"]),
  description: "The content itself; then `url` may be empty."
}

/** It has `url` or `content`, or both; generators of clients have no form for that rule. */
const item = extensible(
  object({ description: text, url: uri, password: text, content: inlined }, ["description"])
)

/** Bodies and answers of Linked Data Notifications. */
const linkedData = (description: string) => ({
  [linkedDataType]: {
    description,
    anyOf: [
      { type: "object", additionalProperties: true },
      { type: "array", items: { type: "object", additionalProperties: true } }
    ]
  }
})

const notificationForm = {
  description: visibleText,
  url: uri,
  content: text,
  ...describingFormFields
}

const asDocument = documentRequestBody("NewNotification", {
  form: formSchema(notificationForm, ["description"])
})

const deposited: RequestBodyDescription = {
  ...asDocument,
  content: {
    ...asDocument.content,
    [plainTextType]: {
      type: "string",
      pattern: "\\S",
      description: "Any text: its first line describes the notification."
    },
    ...linkedData("A notification in JSON-LD.")
  }
}

const stored = (description: string): ResponseDescription => ({
  description,
  content: { "text/html": text },
  headers: ["Location", "Link", "Vary?", "Cache-Control?"]
})

const readSchema: Schema = {
  ...oneOf("true"),
  description: "A reader has marked it as read."
}

/** What only answers show. */
const shown = {
  ...attributes({ href: uri }),
  password: { ...text, description: "Only in the answer that creates it." },
  shared: {
    ...object(attributes({ href: uri }), ["href"]),
    description: "A URI for reading without a password; only in the answer that creates it."
  }
}

const listed = {
  ...attributes({ href: uri, time: text, discarded: discardedSchema }),
  notification: list(ref("Notification"))
}

const newMailbox = (service: ServiceDescription): Schema =>
  rootElement("mailbox", {
    name: optionalName,
    title: elementOrAttribute(title),
    ...newSettings(service),
    ...ignored({ ...shown, ...listed })
  })

const openMailbox = (service: ServiceDescription): ResourceOperation => ({
  handle: postMailboxes,
  form: (_call, _fields, { settings }) => openForm(defaultRetention(settings)),
  id: "openMailbox",
  summary: "Opens a mailbox",
  needs: "account",
  scopes: ["admin"],
  headers: ["Slug"],
  body: documentRequestBody("NewMailbox", {
    isOptional: true,
    form: formSchema({ name: optionalName, title, ...newSettings(service) })
  }),
  problems: ["gone"],
  responses: {
    201: viewResponse("Mailbox", "The mailbox, with its secrets", ["Link"])
  }
})

const redirected = emptyResponse("Redirects the browser to the mailbox", [
  "Location",
  "Cache-Control",
  "Link"
])

const marked = emptyResponse("Marked", ["Link"])

const upTo = { time: { ...text, description: "The `time` of a listing of this mailbox." } }

/** Read marks, which all readers of a mailbox share. */
const readMarks: ResourceDefinition["operations"] = {
  "PUT /mailboxes/{mailbox}/notifications/{notification}/read": {
    handle: putRead,
    id: "markRead",
    summary: "Marks one notification as read, for all readers",
    needs: "reader",
    scopes: ["read"],
    responses: { 204: marked }
  },
  "DELETE /mailboxes/{mailbox}/notifications/{notification}/read": {
    handle: deleteRead,
    id: "markUnread",
    summary: "Marks one notification as unread, for all readers",
    needs: "reader",
    scopes: ["read"],
    responses: { 204: marked }
  },
  "POST /mailboxes/{mailbox}/notifications/{notification}/read": {
    handle: postReadForm,
    authorize: authorizeReader,
    id: "markReadByForm",
    summary: "Marks one notification as read or unread, for a page's form",
    needs: "reader",
    scopes: ["read"],
    body: formRequestBody(formSchema({ method: oneOf("put", "delete") }, ["method"])),
    responses: { 303: redirected }
  },
  "PUT /mailboxes/{mailbox}/read": {
    handle: putReadUpTo,
    id: "markReadUpTo",
    summary: "Marks everything up to a time as read, for all readers",
    needs: "reader",
    scopes: ["read"],
    body: documentRequestBody("ReadUpTo"),
    problems: ["unknown-cursor"],
    responses: { 204: marked }
  },
  "POST /mailboxes/{mailbox}/read": {
    handle: postReadUpToForm,
    authorize: authorizeReader,
    id: "markReadUpToByForm",
    summary: "Marks everything up to a time as read, for a page's form",
    needs: "reader",
    scopes: ["read"],
    body: formRequestBody(formSchema(upTo, ["time"])),
    problems: ["unknown-cursor"],
    responses: { 303: redirected }
  }
}

const secretSchema: Schema = {
  type: "string",
  pattern: "^[!-~]+$",
  minLength: webhookSecretCharsMin,
  maxLength: webhookSecretCharsMax
}

const templates = {
  webhook: settings.webhook,
  "webhook-link": settings["webhook-link"],
  "webhook-priority": settings["webhook-priority"],
  "webhook-tags": settings["webhook-tags"]
}

/** The settings but those of webhooks, and the end of a mailbox, by the forms of a page. */
const changedByForm = (service: ServiceDescription): ResourceOperation => {
  const { deposit, fetch, "fetch-limit": limit, receipts, retention } = newSettings(service)
  return {
    handle: postSettingsForm,
    form: ({ parameters }, fields) =>
      fields.get("method") === "delete"
        ? removalForm(parameters.get("mailbox"))
        : settingsForm(parameters.get("mailbox")),
    id: "changeMailboxByForm",
    summary:
      "Replaces the settings, or with `method=delete` removes the mailbox, for a page's form",
    needs: "role",
    scopes: ["admin"],
    body: formRequestBody(formSchema({
      method: oneOf("put", "delete"),
      version: pageVersion,
      title,
      deposit,
      retention,
      fetch,
      "fetch-limit": limit,
      receipts,
      name: { ...slug, description: "The name of the mailbox, to remove it." }
    }, ["method"])),
    problems: ["precondition-failed"],
    responses: {
      303: emptyResponse("Redirects the browser to the mailbox, or to the others", [
        "Location",
        "Cache-Control",
        "Link?"
      ])
    }
  }
}

/** The settings of webhooks by the form of a page, and the secret, which no answer has. */
const webhooks: ResourceDefinition["operations"] = {
  "POST /mailboxes/{mailbox}/webhooks": {
    handle: postWebhookForm,
    form: ({ parameters }) => webhookForm(parameters.get("mailbox")),
    id: "configureWebhooksByForm",
    summary: "Changes what a mailbox makes of webhooks, and their secret, for a page's form",
    needs: "role",
    scopes: ["admin"],
    body: formRequestBody(formSchema({
      version: pageVersion,
      sender: oneOf("", ...senderNames),
      ...templates,
      secret: { ...secretSchema, minLength: 0, pattern: `^$|${secretSchema.pattern}` },
      unsigned: oneOf("true")
    })),
    problems: ["precondition-failed"],
    responses: { 303: redirected }
  },
  "PUT /mailboxes/{mailbox}/webhook-secret": {
    handle: putWebhookSecret,
    id: "setWebhookSecret",
    summary: "Sets the secret by which the webhooks of a mailbox are signed",
    needs: "role",
    scopes: ["admin"],
    body: documentRequestBody("WebhookSecret"),
    responses: { 204: emptyResponse("Webhooks need a signature", ["Link"]) }
  },
  "DELETE /mailboxes/{mailbox}/webhook-secret": {
    handle: deleteWebhookSecret,
    id: "removeWebhookSecret",
    summary: "Removes the secret of webhooks: they need no signature",
    needs: "role",
    scopes: ["admin"],
    responses: { 204: emptyResponse("Webhooks need no signature", ["Link"]) }
  }
}

/** What does not depend on the deployment. */
const fixed: ResourceDefinition = {
  tag: "mailboxes",
  about: "Durable inboxes: notifications wait here until their readers retrieve them.",
  schemas: {
    Mailbox: rootElement("mailbox", { ...shown, title: text, ...settings }, ["href"]),
    MailboxListing: rootElement("mailbox", {
      ...attributes({ title: text }),
      ...listed,
      ...settings
    }, ["href", "title", "time", "notification"]),
    Mailboxes: rootElement("mailboxes", {
      mailbox: list(
        object(
          attributes({ href: uri, title: text, notifications: digits }),
          ["href", "title", "notifications"]
        )
      )
    }, ["mailbox"]),
    ReadUpTo: rootElement("read", upTo, ["time"]),
    WebhookSecret: rootElement("webhook-secret", {
      secret: secretSchema
    }, ["secret"]),
    NewNotification: extensible(rootElement("notification", { item }, ["item"])),
    Notification: extensible(rootElement("notification", {
      ...attributes({ href: uri, received: dateTime, mailbox: uri, read: readSchema }),
      item: extensible(object({ description: text, url: uri, password: text, from: uri })),
      cached: object(attributes({ href: uri, type: text, length: digits }), ["href"])
    }, ["href", "received", "item"]))
  },
  operations: {
    "GET /mailboxes": {
      handle: getMailboxes,
      id: "listMailboxes",
      summary: "Lists the caller's own mailboxes, by name",
      needs: "account",
      scopes: listingScopes,
      query: pagingParameters,
      responses: { 200: viewResponse("Mailboxes", "A page of the listing") }
    },
    "GET /mailboxes/{mailbox}": {
      handle: getMailbox,
      id: "readMailbox",
      summary: "Reads the notifications of a mailbox, oldest first; a page begins with the newest",
      description: "With `Prefer: wait=30` a long poll; as text/event-stream live. Without "
        + "credentials a browser gets the page to deposit at.",
      needs: "reader",
      scopes: ["read"],
      headers: ["Prefer", "Last-Event-ID"],
      problems: ["unknown-cursor"],
      unlinkedQuery: ["changes", "read"],
      query: {
        ...sinceParameters,
        before: {
          description: "Only entries older than this one, for a page or a feed.",
          schema: digits
        },
        q: {
          description: "Only those with this text in a field, in any case; the newest first.",
          schema: { ...text, maxLength: searchCharsMax }
        },
        tag: {
          description: "Only those with this tag; the newest first.",
          schema: { ...text, maxLength: searchCharsMax }
        },
        priority: {
          description: "Only those of this priority; without one it is 3. The newest first.",
          schema: oneOf("1", "2", "3", "4", "5")
        },
        unread: {
          description: "With `true` only those without a read mark; the newest first.",
          schema: oneOf("true")
        },
        changes: {
          description: "With `true` a stream has an event `changed`, too, when read marks, the "
            + "settings or a cached copy change, or a notification is removed.",
          schema: oneOf("true")
        },
        read: {
          description: "Makes a browser ask for the password, instead of the page for deposits.",
          schema: text
        }
      },
      responses: {
        200: viewResponse("MailboxListing", "A page of the listing", [
          "Link",
          "Discarded?",
          "Preference-Applied?",
          "Accept-Post?",
          "Last-Modified?",
          "X-Robots-Tag?"
        ], {
          ...feedContent,
          ...linkedData("An inbox (W3C LDN §3.3), the newest first: its URIs in `contains`."),
          ...eventContent(
            "An event `notification` for each, its data the notification as XML. An event "
              + "`position` first, if the position of the request is unknown or discarded. With "
              + "`changes=true` events `changed`, their data the URI of the mailbox."
          )
        })
      }
    },
    "POST /mailboxes/{mailbox}": {
      handle: postMailbox,
      authorize: authorizeDeposit,
      direct: directDeposit,
      keyBeside: "mailbox",
      form: ({ parameters }) => depositForm(parameters.get("mailbox")),
      acceptPost,
      id: "deposit",
      summary: "Deposits a notification",
      description: "A mailbox with the setting `webhook` takes a body of any type: what is no "
        + "notification becomes content as it came.",
      needs: "anyone",
      scopes: ["deposit", "send"],
      headers: ["Priority", "Tags", "Click", "traceparent"],
      body: deposited,
      problems: ["blocked", "forbidden", "quota-exceeded"],
      responses: {
        201: stored("Stored until a reader retrieves it; for JSON-LD (W3C LDN §3.3)"),
        202: stored("Stored until a reader retrieves it; a browser gets a page")
      }
    },
    "PUT /mailboxes/{mailbox}": {
      handle: putMailbox,
      id: "configureMailbox",
      summary: "Replaces the settings of a mailbox; an absent setting gets its default",
      needs: "role",
      scopes: ["admin"],
      body: documentRequestBody("NewMailbox"),
      problems: ["conflict"],
      responses: { 200: viewResponse("Mailbox", "The changed mailbox", ["Link"]) }
    },
    "DELETE /mailboxes/{mailbox}": {
      handle: deleteMailbox,
      id: "deleteMailbox",
      summary: "Removes a mailbox with its notifications",
      needs: "role",
      scopes: ["admin"],
      problems: ["conflict"]
    },
    "POST /mailboxes/{mailbox}/password": {
      handle: postPassword,
      id: "renewSecrets",
      summary: "Changes both secrets of a mailbox",
      needs: "role",
      scopes: ["admin"],
      body: buttonRequestBody,
      responses: { 200: viewResponse("Mailbox", "The new secrets, only in this answer", ["Link"]) }
    },
    ...webhooks,
    "GET /mailboxes/{mailbox}/notifications/{notification}": {
      handle: getNotification,
      id: "getNotification",
      summary: "Reads one notification",
      needs: "reader",
      scopes: ["read"],
      unlinkedQuery: [removalParameter],
      query: {
        [removalParameter]: {
          description: "With `true` a page asks whether to remove the notification.",
          schema: oneOf("true")
        }
      },
      responses: {
        200: viewResponse("Notification", "The notification", ["Link", "X-Robots-Tag?"], {
          "text/xml+rss": ref("Notification"),
          ...linkedData("The JSON-LD as it came, or an `Announce` of Activity Streams.")
        })
      }
    },
    "POST /mailboxes/{mailbox}/notifications/{notification}": {
      handle: postNotificationForm,
      authorize: authorizeReader,
      id: "deleteNotificationByForm",
      summary: "Removes the resource, for a page's form with `method=delete`",
      needs: "reader",
      scopes: ["admin"],
      body: formRequestBody(formSchema({ method: oneOf("delete") }, ["method"])),
      problems: ["precondition-failed"],
      responses: {
        303: redirected
      }
    },
    ...readMarks,
    "DELETE /mailboxes/{mailbox}/notifications/{notification}": {
      handle: deleteNotification,
      id: "deleteNotification",
      summary: "Removes one notification",
      needs: "reader",
      scopes: ["admin"],
      responses: { 204: emptyResponse("Removed", ["Link"]) }
    }
  }
}

export const mailboxResource = (service: ServiceDescription): ResourceDefinition => ({
  ...fixed,
  schemas: { NewMailbox: newMailbox(service), ...fixed.schemas },
  operations: {
    ...fixed.operations,
    "POST /mailboxes": openMailbox(service),
    "POST /mailboxes/{mailbox}/settings": changedByForm(service)
  }
})
