/** What push registrations take and answer (A12). */
import { type Area, attribute, attributes, button, digits, document, formBody, formOf, list,
  nothing, object, oneOf, ref, root, seeOther, text, time, uri, view,
  withoutPage } from "../../formats/openapi/index.ts"

const status = attribute(text)

const form = attribute(oneOf("native", "websub"))

export const registrationOperations: Area = {
  tag: "registrations",
  about: "Callbacks that are told what is new in a mailbox: Standard Webhooks, or W3C WebSub.",
  schemas: {
    NewRegistration: root("registration", { callback: uri }, ["callback"]),
    ChangedRegistration: root("registration", { callback: uri }),
    Registration: root("registration", {
      ...attributes({ href: uri, created: time }),
      status,
      form,
      callback: uri,
      secret: { type: "string", description: "Of Standard Webhooks, shown this once." },
      account: text,
      cursor: text,
      "lease-until": time,
      attempts: digits,
      last: time,
      next: time,
      code: digits,
      problem: text,
      "rotated-until": time
    }, ["href", "status", "form", "created", "callback", "cursor", "attempts"]),
    RegistrationEntry: object({
      ...attributes({ href: uri, callback: uri, attempts: digits }),
      status,
      form
    }, ["href", "status", "form", "callback", "attempts"]),
    Registrations: root("registrations", {
      ...attributes({ href: uri }),
      registration: list(ref("RegistrationEntry"))
    }, ["href", "registration"])
  },
  operations: {
    "GET /mailboxes/{mailbox}/registrations": {
      id: "listRegistrations",
      summary: "The mailbox's registrations",
      needs: "reader",
      answers: { 200: view("Registrations", "All of them", ["Link"]) }
    },
    "POST /mailboxes/{mailbox}/registrations": {
      id: "register",
      summary: "Registers a callback, or takes a WebSub subscription",
      needs: "reader",
      body: document("NewRegistration", {
        form: formOf([
          "callback",
          "hub.mode",
          "hub.topic",
          "hub.callback",
          "hub.secret",
          "hub.lease_seconds"
        ])
      }),
      answers: {
        201: view("Registration", "Registered, with its secret", ["Location", "Link"]),
        202: {
          ...view("Registration", "The intent of the subscriber is verified now", [
            "Location?",
            "Link"
          ]),
          isView: false
        }
      }
    },
    "GET /mailboxes/{mailbox}/registrations/{registration}": {
      id: "getRegistration",
      summary: "How a registration stands",
      needs: "reader",
      answers: { 200: view("Registration", "The registration", ["Link"]) }
    },
    "PUT /mailboxes/{mailbox}/registrations/{registration}": {
      id: "liftRegistration",
      summary: "Lifts a suspension or verifies anew; it may name another callback",
      needs: "reader",
      body: document("ChangedRegistration", { isOptional: true }),
      problems: ["conflict"],
      answers: { 200: view("Registration", "The registration as it is now", ["Link"]) }
    },
    "POST /mailboxes/{mailbox}/registrations/{registration}": {
      id: "changeRegistrationByForm",
      summary: "PUT or DELETE, as `method` says, for a page's form",
      needs: "reader",
      body: formBody(formOf({ method: oneOf("put", "delete"), callback: text }, ["method"])),
      problems: ["precondition-failed"],
      answers: {
        200: withoutPage(view("Registration", "The registration as it is now", ["Link"])),
        204: nothing("It is removed", ["Link"]),
        303: seeOther
      }
    },
    "DELETE /mailboxes/{mailbox}/registrations/{registration}": {
      id: "unregister",
      summary: "Removes a registration; nothing is pushed afterwards",
      needs: "reader",
      problems: ["conflict"],
      answers: { 204: nothing("It is removed", ["Link"]) }
    },
    "POST /mailboxes/{mailbox}/registrations/{registration}/secret": {
      id: "rotateSecret",
      summary: "A new secret; the older one signs too for a while",
      needs: "reader",
      body: button,
      answers: { 200: view("Registration", "The new secret, shown this once", ["Link"]) }
    }
  }
}
