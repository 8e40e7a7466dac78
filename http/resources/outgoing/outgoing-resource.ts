/** The operations of outgoing mailboxes (A5 to A8). */
import { pausedOriginsMax, replayedRecipientsMax } from "../../../actors/index.ts"
import { attribute, attributes, buttonRequestBody, dateTime, describingFormFields, digits,
  documentRequestBody, emptyResponse, eventContent, extensible, formRequestBody, formSchema,
  ignored, list, object, oneOf, pageVersion, pagingParameters, ref, type RequestBodyDescription,
  rootElement, seeOtherResponse, someOf, text, uri, viewResponse, webUri,
  withoutHtml } from "../../formats/openapi/index.ts"
import { uriCharsMax } from "../../limits.ts"
import type { ResourceDefinition } from "../../resource.ts"
import { attemptSchema } from "../attempts/index.ts"
import { postReplacement, postWithdrawal } from "./follow-ups.ts"
import { mailboxPath, notificationPath } from "./outgoing-access.ts"
import { getOutgoingListing, postRetrySpan, redirectToOwn } from "./outgoing-listing.ts"
import { deleteOutgoing, getOutgoing, postOutgoingForm,
  postRetry } from "./outgoing-notification.ts"
import { composeForm, replacementForm, replayForm, retrySpanForm } from "./outgoing-views.ts"
import { getPauses, postPausesForm, putPauses } from "./pauses.ts"
import { getRelayAttempts } from "./relay-attempts.ts"
import { postOutgoing } from "./submission.ts"

const status = oneOf("sent", "waiting", "failed")

const recipient = object({
  ...attributes({ href: uri, attempts: digits, last: dateTime, next: dateTime, code: digits }),
  paused: attribute({ ...dateTime, description: "Since when a pause keeps it back." }),
  status: attribute(oneOf("success", "retry", "waiting", "failed")),
  location: attribute(text),
  problem: attribute(text)
}, ["status", "href", "attempts"])

const toField = {
  ...text,
  description: "Recipients, a line each: URIs, or names of mailboxes here. The field may repeat."
}

const sentForm = formSchema({
  to: toField,
  from: text,
  description: text,
  url: uri,
  content: text,
  ...describingFormFields
}, ["to", "description"])

const replacementFields = formSchema({
  from: text,
  description: text,
  url: uri,
  content: text,
  ...describingFormFields
}, ["description"])

const retrySpanBody: RequestBodyDescription = documentRequestBody("Retry", {
  isOptional: true,
  form: formSchema({ since: dateTime, until: text, to: toField })
})

export const outgoingResource: ResourceDefinition = {
  tag: "outgoing",
  about: "Sends notifications to one or more mailboxes, and retries until they arrive.",
  schemas: {
    SentNotification: extensible(rootElement("notification", {
      from: attribute({
        type: ["string", "boolean"],
        pattern: text["pattern"],
        description: "With `true` the recipients see the sender."
      }),
      to: { anyOf: [webUri, someOf(webUri)] },
      item: { type: "object", additionalProperties: true }
    }, ["to", "item"])),
    Replacement: extensible(rootElement("notification", {
      from: attribute({
        type: ["string", "boolean"],
        pattern: text["pattern"],
        description: "With `true` the recipients see the sender."
      }),
      item: { type: "object", additionalProperties: true }
    }, ["item"])),
    Outgoing: rootElement("notification", {
      ...attributes({ href: uri, time: dateTime, status }),
      replaced: attribute({ ...dateTime, description: "When it was last replaced." }),
      withdrawn: attribute({ ...dateTime, description: "When it was withdrawn." }),
      recipient: list(recipient)
    }, ["href", "time", "status", "recipient"]),
    RelayAttempt: attemptSchema(
      {
        recipient: attribute({ ...text, description: "The URI of the recipient." }),
        number: attribute({ ...digits, description: "Of the attempts there, from 1." })
      },
      ["done", "schedule", "retry-after", "follow-up", "permanent", "given-up"],
      ["recipient", "number"]
    ),
    RelayAttempts: rootElement("attempts", {
      ...attributes({ href: uri }),
      dropped: attribute({ ...digits, description: "Attempts that are not kept, if any." }),
      attempt: list(ref("RelayAttempt"))
    }, ["href", "attempt"]),
    OutgoingListing: rootElement("notifications", {
      ...attributes({ href: uri }),
      paused: attribute({ ...dateTime, description: "Since when all relays are paused." }),
      notification: list(
        object(attributes({ status, href: uri, time: dateTime }), ["status", "href"])
      )
    }, ["href", "notification"]),
    ChangedPauses: rootElement("pauses", {
      status: attribute(oneOf("active", "paused")),
      pause: {
        ...list(object({
          origin: attribute({
            ...webUri,
            maxLength: uriCharsMax,
            description: "Without a path, such as `https://receiver.example`."
          }),
          ...ignored(attributes({ since: dateTime }))
        }, ["origin"])),
        maxItems: pausedOriginsMax
      },
      ...ignored(attributes({ href: uri, since: dateTime }))
    }),
    Pauses: rootElement("pauses", {
      ...attributes({ href: uri, status: oneOf("active", "paused"), since: dateTime }),
      pause: list(object(attributes({ origin: uri, since: dateTime }), ["origin", "since"]))
    }, ["href", "status", "pause"]),
    Retry: rootElement("retry", { to: someOf(webUri) }, ["to"]),
    Retried: rootElement(
      "retried",
      {
        ...attributes({ notifications: digits, recipients: digits, next: uri }),
        refused: attribute({
          ...digits,
          description: "Notifications that are not sent again: too often, or replaced since."
        })
      },
      ["notifications", "recipients"]
    )
  },
  operations: {
    "GET /outgoing": {
      handle: redirectToOwn(303),
      id: "getOwnOutgoing",
      summary: "Redirects to the caller's own outgoing mailbox",
      needs: "account",
      scopes: ["send", "read"],
      responses: {
        303: emptyResponse("Redirects to the outgoing mailbox", [
          "Location",
          "Vary",
          "Cache-Control"
        ])
      }
    },
    "POST /outgoing": {
      handle: redirectToOwn(307),
      id: "sendFromOwn",
      summary: "Redirects a submission to the caller's own outgoing mailbox",
      needs: "account",
      scopes: ["send"],
      body: { ...formRequestBody(sentForm), required: false, kind: "none" },
      responses: {
        307: emptyResponse("Redirects to the outgoing mailbox", [
          "Location",
          "Vary",
          "Cache-Control"
        ])
      }
    },
    "GET /outgoing/{account}": {
      handle: getOutgoingListing,
      id: "listOutgoing",
      summary: "Lists the sent notifications, newest first",
      needs: "role",
      scopes: ["send", "read"],
      query: {
        ...pagingParameters,
        status: { description: "Only notifications with this status.", schema: status }
      },
      responses: { 200: viewResponse("OutgoingListing", "A page of the listing") }
    },
    "POST /outgoing/{account}": {
      handle: postOutgoing,
      form: ({ parameters }) => composeForm(mailboxPath(parameters.get("account"))),
      id: "send",
      summary: "Sends a notification to one or more mailboxes",
      needs: "role",
      scopes: ["send"],
      headers: ["traceparent"],
      body: documentRequestBody("SentNotification", { form: sentForm }),
      problems: ["blocked", "quota-exceeded"],
      responses: {
        202: viewResponse("Outgoing", "Durably queued", ["Location", "Notification-Status"]),
        303: seeOtherResponse
      }
    },
    "GET /outgoing/{account}/pauses": {
      handle: getPauses,
      id: "getPauses",
      summary: "Reads which relays are paused",
      needs: "role",
      scopes: ["send", "read"],
      responses: { 200: viewResponse("Pauses", "What is paused, and since when") }
    },
    "PUT /outgoing/{account}/pauses": {
      handle: putPauses,
      id: "replacePauses",
      summary:
        "Pauses all relays of the outgoing mailbox, or those to some origins, or resumes them",
      description:
        "What is sent meanwhile is accepted and waits, up to the quota of the account; when its " +
        "pause ends, it is relayed.",
      needs: "role",
      scopes: ["send"],
      body: documentRequestBody("ChangedPauses"),
      problems: ["conflict"],
      responses: { 200: viewResponse("Pauses", "What is paused now") }
    },
    "POST /outgoing/{account}/pauses": {
      handle: postPausesForm,
      id: "replacePausesByForm",
      summary: "Pauses or resumes relays, for a page's form with `method=put`",
      needs: "role",
      scopes: ["send"],
      body: formRequestBody(
        formSchema({
          method: oneOf("put"),
          version: pageVersion,
          status: oneOf("active", "paused"),
          origin: { ...text, description: "Origins, a line each; the field may repeat." }
        }, ["method"])
      ),
      problems: ["precondition-failed"],
      responses: {
        200: withoutHtml(viewResponse("Pauses", "What is paused now")),
        303: seeOtherResponse
      }
    },
    "POST /outgoing/{account}/retry": {
      handle: postRetrySpan,
      form: ({ parameters }) => retrySpanForm(mailboxPath(parameters.get("account"))),
      id: "replay",
      summary: "Retries the failed recipients of a span of time, or sends it again to some",
      description: "With `to` all that was sent to these recipients is sent again, whatever they " +
        `have got: ${replayedRecipientsMax} at most. \`next\` takes the same body.`,
      needs: "role",
      scopes: ["send"],
      query: {
        since: {
          description: "The begin of the span (RFC 3339), unless the form has it.",
          schema: dateTime
        },
        until: {
          description: "The end of the span (RFC 3339), unless the form has it; by default now.",
          schema: dateTime
        },
        after: { description: "The cursor of `next`.", schema: { ...text, minLength: 1 } }
      },
      body: retrySpanBody,
      responses: {
        202: viewResponse("Retried", "The numbers of retried notifications and recipients")
      }
    },
    "GET /outgoing/{account}/{notification}": {
      handle: getOutgoing,
      id: "getOutgoing",
      summary: "Reads the status of a notification and of each recipient",
      description: "With `Prefer: wait=30` and If-None-Match the answer waits for a change.",
      needs: "role",
      scopes: ["send", "read"],
      headers: ["Prefer", "Last-Event-ID"],
      problems: ["malformed"],
      responses: {
        200: viewResponse(
          "Outgoing",
          "The status",
          ["Notification-Status?", "Preference-Applied?"],
          eventContent("An event `status` for each change, its data the document as XML.")
        )
      }
    },
    "GET /outgoing/{account}/{notification}/attempts": {
      handle: getRelayAttempts,
      id: "listOutgoingAttempts",
      summary: "Lists what was sent last to the recipients, and what they have answered",
      needs: "role",
      scopes: ["send", "read"],
      responses: { 200: viewResponse("RelayAttempts", "The attempts, the newest first") }
    },
    "POST /outgoing/{account}/{notification}": {
      handle: postOutgoingForm,
      id: "deleteOutgoingByForm",
      summary: "Removes the resource, for a page's form with `method=delete`",
      needs: "role",
      scopes: ["send", "admin"],
      body: formRequestBody(formSchema({ method: oneOf("delete") }, ["method"])),
      problems: ["precondition-failed"],
      responses: { 204: emptyResponse("Removed"), 303: seeOtherResponse }
    },
    "DELETE /outgoing/{account}/{notification}": {
      handle: deleteOutgoing,
      id: "deleteOutgoing",
      summary: "Removes a notification; no attempt starts afterwards",
      needs: "role",
      scopes: ["send", "admin"],
      problems: ["conflict"]
    },
    "POST /outgoing/{account}/{notification}/replacement": {
      handle: postReplacement,
      form: ({ parameters }) =>
        replacementForm(
          notificationPath(parameters.get("account"), parameters.get("notification"))
        ),
      id: "replaceOutgoing",
      summary: "Sends another notification to its recipients, in place of this one",
      description: "Mailboxes here show the last one only. Others get it with an element " +
        "`replaces`, the URI of the earlier one. The answer is 409 once it is withdrawn.",
      needs: "role",
      scopes: ["send"],
      body: documentRequestBody("Replacement", { form: replacementFields }),
      problems: ["blocked", "conflict", "quota-exceeded"],
      responses: {
        202: viewResponse("Outgoing", "Durably queued", ["Notification-Status"]),
        303: seeOtherResponse
      }
    },
    "POST /outgoing/{account}/{notification}/withdrawal": {
      handle: postWithdrawal,
      id: "withdrawOutgoing",
      summary: "Withdraws a notification: mailboxes here show when, other recipients are notified",
      description: "The answer is 409 when it was withdrawn before.",
      needs: "role",
      scopes: ["send", "admin"],
      body: buttonRequestBody,
      problems: ["conflict"],
      responses: {
        202: viewResponse("Outgoing", "The status", ["Notification-Status"]),
        303: seeOtherResponse
      }
    },
    "POST /outgoing/{account}/{notification}/retry": {
      handle: postRetry,
      id: "retryOutgoing",
      summary: "Retries the failed recipients of a notification, or sends it again to some",
      description: "With `to` it is sent again to these recipients, whatever they have got, with " +
        "the same Idempotency-Key; those that are retried are tried at once. Without it, the " +
        "answer is 409 when no recipient has failed.",
      form: (call, _fields) =>
        replayForm(
          notificationPath(call.parameters.get("account"), call.parameters.get("notification"))
        ),
      needs: "role",
      scopes: ["send"],
      body: documentRequestBody("Retry", {
        isOptional: true,
        form: formSchema({
          to: toField
        })
      }),
      problems: ["conflict"],
      responses: {
        202: viewResponse("Outgoing", "The status", ["Notification-Status"]),
        303: seeOtherResponse
      }
    }
  }
}
