/** The operations of push registrations (A12). */
import { checkedBodyCharsMax, headerBlockBytesMax, subscriberSecretBytesMax } from "../../limits.ts"
import { attribute, attributes, buttonRequestBody, dateTime, digits, documentRequestBody,
  emptyResponse, formRequestBody, formSchema, ignored, list, object, oneOf, pageVersion, ref,
  rootElement, seeOtherResponse, text, uri, viewResponse, webUri,
  withoutHtml } from "../../formats/openapi/index.ts"
import type { ResourceDefinition } from "../../resource.ts"
import { attemptSchema, recordedHeaderSchema } from "../attempts/index.ts"
import { deleteRegistration, getAttempts, getRegistration, getRegistrations, postRegistrationForm,
  postRegistrations, postSecret, putRegistration } from "./registration-handlers.ts"
import { authorizeSubscriber } from "./registration-access.ts"
import { registerForm } from "./registration-views.ts"
import { postSignatureCheck } from "./signature-check.ts"
import { checkedFields, signatureCheckForm } from "./signature-views.ts"
import { postTest } from "./test-event.ts"

/** Without a fragment, as clients send it. */
const callback = { ...webUri, pattern: "^[hH][tT][tT][pP][sS]?://[!\"$-.0->@-~][!\"$-~]*$" }

const status = attribute(text)

const form = attribute(oneOf("native", "websub", "webpush"))

const base64url = { ...text, pattern: "^[A-Za-z0-9_-]*$" }

/** A key of a browser, of this many characters. */
const keyOf = (chars: number) => ({ ...text, pattern: `^[A-Za-z0-9_-]{${chars}}$` })

/** What only answers show. */
const shown = {
  ...attributes({ href: uri, created: dateTime }),
  status,
  form,
  topic: { ...uri, description: "Of a WebSub subscription." },
  secret: {
    ...text,
    description: "The secret of Standard Webhooks, only in the answer that creates it."
  },
  account: text,
  cursor: text,
  "lease-until": dateTime,
  attempts: digits,
  last: dateTime,
  next: dateTime,
  code: digits,
  problem: text,
  "rotated-until": dateTime,
  test: {
    ...object({
      ...attributes({
        status: oneOf("pending", "delivered", "failed", "unknown"),
        started: dateTime,
        code: digits,
        milliseconds: digits,
        problem: text
      })
    }, ["status", "started"]),
    description: "The last test event, and what came of it."
  }
}

/** A push as its receiver got it. */
const checkedPush = {
  headers: {
    ...text,
    minLength: 1,
    maxLength: headerBlockBytesMax,
    description: "Its header fields, one on each line."
  },
  body: {
    ...text,
    maxLength: checkedBodyCharsMax,
    description: "Its body, byte for byte: JSON keeps all line ends."
  }
}

const readerFields = ["Link", "X-Robots-Tag?"] as const

export const registrationResource: ResourceDefinition = {
  tag: "registrations",
  about:
    "Callbacks that receive the changes of a mailbox: Standard Webhooks, W3C WebSub, Web Push.",
  schemas: {
    NewCallback: rootElement("registration", { ...ignored(shown), callback }, ["callback"]),
    /** What `PushSubscription.toJSON()` gives (Push API §8.2). */
    BrowserSubscription: rootElement("registration", {
      endpoint: callback,
      expirationTime: { description: "Is ignored: the push service reports the end." },
      keys: object({
        p256dh: { ...keyOf(87), description: "An uncompressed point of P-256." },
        auth: keyOf(22)
      }, ["p256dh", "auth"])
    }, ["endpoint", "keys"]),
    NewRegistration: {
      anyOf: [ref("NewCallback"), ref("BrowserSubscription")],
      // Without it some tools call the root after the schema.
      xml: { name: "registration" }
    },
    /** A request of W3C WebSub §5.1. */
    Subscription: formSchema({
      "hub.mode": oneOf("subscribe", "unsubscribe"),
      "hub.topic": uri,
      "hub.callback": callback,
      "hub.secret": { ...text, maxLength: subscriberSecretBytesMax },
      "hub.lease_seconds": { type: "string", pattern: "^[0-9]*$" }
    }, ["hub.mode", "hub.topic", "hub.callback"]),
    ChangedRegistration: rootElement("registration", {
      ...ignored(shown),
      callback,
      status: attribute({
        ...text,
        description: "`paused`: nothing is pushed until a PUT without it. No other is regarded."
      }),
      since: {
        ...text,
        description:
          "A time, or a position of the mailbox, from which pushes go on: earlier than the last "
          + "push, some are repeated; later, some are left out."
      },
      until: {
        ...text,
        description: "With since, a time or a position: what came after it is not repeated."
      }
    }),
    Registration: rootElement("registration", { ...shown, callback: uri }, [
      "href",
      "status",
      "form",
      "created",
      "callback",
      "cursor",
      "attempts"
    ]),
    RegistrationEntry: object({
      ...attributes({ href: uri, callback: uri, topic: uri, attempts: digits }),
      cursor: attribute({ ...digits, description: "Missing in the list of an older service." }),
      ...attributes({ last: dateTime, next: dateTime, code: digits }),
      status,
      form,
      problem: text
    }, ["href", "status", "form", "callback", "attempts"]),
    RecordedHeader: recordedHeaderSchema,
    RegistrationAttempt: attemptSchema(
      { kind: attribute(oneOf("push", "verification", "test")) },
      ["done", "schedule", "retry-after", "suspended", "none", "given-up"],
      ["kind", "duration"]
    ),
    CheckedPush: rootElement("signature-check", checkedPush, ["headers", "body"]),
    SignatureCheck: rootElement("signature-check", {
      result: attribute(oneOf("right", "missing", "malformed", "stale", "wrong")),
      problem: { ...text, description: "What is wrong, or that nothing is." },
      subject: { ...text, description: "What that is about." },
      advice: { ...text, description: "What to do." }
    }, ["result", "problem", "subject", "advice"]),
    Attempts: rootElement("attempts", {
      ...attributes({ href: uri }),
      attempt: list(ref("RegistrationAttempt"))
    }, ["href", "attempt"]),
    Registrations: rootElement("registrations", {
      ...attributes({ href: uri }),
      applicationServerKey: attribute({
        ...base64url,
        description: "The public key by which a browser subscribes (RFC 8292 §4)."
      }),
      registration: list(ref("RegistrationEntry"))
    }, ["href", "applicationServerKey", "registration"])
  },
  operations: {
    "GET /mailboxes/{mailbox}/registrations": {
      handle: getRegistrations,
      id: "listRegistrations",
      summary: "Lists the registrations of a mailbox",
      needs: "reader",
      scopes: ["read", "admin"],
      responses: { 200: viewResponse("Registrations", "All registrations", readerFields) }
    },
    "POST /mailboxes/{mailbox}/registrations": {
      handle: postRegistrations,
      authorize: authorizeSubscriber,
      // No page has a form for a WebSub request.
      form: ({ request }, fields) =>
        fields.has("callback") ? registerForm(request.path) : undefined,
      id: "register",
      summary: "Registers a callback or a browser, or subscribes by WebSub",
      needs: "reader",
      scopes: ["admin"],
      body: documentRequestBody("NewRegistration", {
        form: {
          anyOf: [formSchema({ callback: uri }, ["callback"]), ref("Subscription")]
        }
      }),
      responses: {
        201: viewResponse("Registration", "Registered, in the native form with its secret", [
          "Link"
        ]),
        202: {
          ...viewResponse("Registration", "The service verifies the intent of the subscriber", [
            "Location?",
            "Vary?",
            "Cache-Control?",
            ...readerFields
          ]),
          isView: false
        }
      }
    },
    "GET /mailboxes/{mailbox}/registrations/{registration}": {
      handle: getRegistration,
      id: "getRegistration",
      summary: "Reads a registration and its status",
      needs: "reader",
      scopes: ["read", "admin"],
      responses: { 200: viewResponse("Registration", "The registration", readerFields) }
    },
    "GET /mailboxes/{mailbox}/registrations/{registration}/attempts": {
      handle: getAttempts,
      id: "listRegistrationAttempts",
      summary: "Lists what was sent last to the callback, and what it has answered",
      needs: "reader",
      scopes: ["read", "admin"],
      responses: {
        200: viewResponse("Attempts", "The last attempts, the newest first", readerFields)
      }
    },
    "PUT /mailboxes/{mailbox}/registrations/{registration}": {
      handle: putRegistration,
      id: "liftRegistration",
      summary: "Pauses, lifts a suspension or a pause, or verifies again; may change the callback",
      needs: "reader",
      scopes: ["admin"],
      body: documentRequestBody("ChangedRegistration", { isOptional: true }),
      problems: ["conflict"],
      responses: { 200: viewResponse("Registration", "The changed registration", readerFields) }
    },
    "POST /mailboxes/{mailbox}/registrations/{registration}": {
      handle: postRegistrationForm,
      authorize: authorizeSubscriber,
      id: "changeRegistrationByForm",
      summary: "Changes or removes a registration, for a page's form",
      needs: "reader",
      scopes: ["admin"],
      body: formRequestBody(
        formSchema({
          method: oneOf("put", "delete"),
          version: pageVersion,
          callback: text,
          status: text,
          since: text,
          until: text
        }, ["method"])
      ),
      problems: ["precondition-failed"],
      responses: {
        200: withoutHtml(viewResponse("Registration", "The changed registration", readerFields)),
        204: emptyResponse("Removed", ["Link"]),
        303: seeOtherResponse
      }
    },
    "DELETE /mailboxes/{mailbox}/registrations/{registration}": {
      handle: deleteRegistration,
      id: "unregister",
      summary: "Removes a registration; nothing is pushed afterwards",
      needs: "reader",
      scopes: ["admin"],
      problems: ["conflict"],
      responses: { 204: emptyResponse("Removed", ["Link"]) }
    },
    "POST /mailboxes/{mailbox}/registrations/{registration}/secret": {
      handle: postSecret,
      authorize: authorizeSubscriber,
      id: "rotateSecret",
      summary: "Creates a new secret; the old one also signs for a while",
      needs: "reader",
      scopes: ["admin"],
      body: buttonRequestBody,
      responses: {
        200: viewResponse("Registration", "The new secret, only in this answer", ["Link"])
      }
    },
    "POST /mailboxes/{mailbox}/registrations/{registration}/test": {
      handle: postTest,
      authorize: authorizeSubscriber,
      id: "testRegistration",
      summary: "Sends a test event to the callback, once",
      description: "The answer waits for the result, at most 10 s, or as long as `Prefer: wait=2`.",
      headers: ["Prefer"],
      needs: "reader",
      scopes: ["admin"],
      body: buttonRequestBody,
      problems: ["conflict"],
      responses: {
        200: viewResponse("Registration", "The registration, with the result", readerFields),
        202: {
          ...viewResponse("Registration", "There is no result yet: read the registration later", [
            "Location?",
            "Vary?",
            "Cache-Control?",
            ...readerFields
          ]),
          isView: false
        },
        303: seeOtherResponse
      }
    },
    "POST /mailboxes/{mailbox}/registrations/{registration}/signature-check": {
      handle: postSignatureCheck,
      authorize: authorizeSubscriber,
      form: ({ request }, fields) => signatureCheckForm(request.path, checkedFields(fields)),
      id: "checkSignature",
      summary: "Says what is wrong with the signature of a push that a receiver rejects",
      description:
        "Nothing is stored but, for an Idempotency-Key of an account, the answer. No answer has a "
        + "secret or the right signature.",
      isPassing: true,
      isUnkeyed: true,
      needs: "reader",
      scopes: ["admin"],
      body: documentRequestBody("CheckedPush", {
        form: formSchema(checkedPush, ["headers", "body"])
      }),
      problems: ["conflict"],
      responses: {
        200: viewResponse("SignatureCheck", "What the check has found", ["Link"])
      }
    }
  }
}
