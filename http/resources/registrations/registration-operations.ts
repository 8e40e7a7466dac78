/** What push registrations take and answer (A12). */
import { attribute, attributes, buttonRequestBody, dateTime, digits, documentRequestBody,
  emptyResponse, formRequestBody, formSchema, list, object, oneOf, type OperationGroup, ref,
  rootElement, seeOtherResponse, text, uri, viewResponse,
  withoutHtml } from "../../formats/openapi/index.ts"

const status = attribute(text)

const form = attribute(oneOf("native", "websub"))

export const registrationOperations: OperationGroup = {
  tag: "registrations",
  about: "Callbacks that receive the changes of a mailbox: Standard Webhooks, or W3C WebSub.",
  schemas: {
    NewRegistration: rootElement("registration", { callback: uri }, ["callback"]),
    ChangedRegistration: rootElement("registration", { callback: uri }),
    Registration: rootElement("registration", {
      ...attributes({ href: uri, created: dateTime }),
      status,
      form,
      callback: uri,
      secret: { type: "string", description: "Of Standard Webhooks, shown this once." },
      account: text,
      cursor: text,
      "lease-until": dateTime,
      attempts: digits,
      last: dateTime,
      next: dateTime,
      code: digits,
      problem: text,
      "rotated-until": dateTime
    }, ["href", "status", "form", "created", "callback", "cursor", "attempts"]),
    RegistrationEntry: object({
      ...attributes({ href: uri, callback: uri, attempts: digits }),
      status,
      form
    }, ["href", "status", "form", "callback", "attempts"]),
    Registrations: rootElement("registrations", {
      ...attributes({ href: uri }),
      registration: list(ref("RegistrationEntry"))
    }, ["href", "registration"])
  },
  operations: {
    "GET /mailboxes/{mailbox}/registrations": {
      id: "listRegistrations",
      summary: "The mailbox's registrations",
      needs: "reader",
      responses: { 200: viewResponse("Registrations", "All of them", ["Link"]) }
    },
    "POST /mailboxes/{mailbox}/registrations": {
      id: "register",
      summary: "Registers a callback, or subscribes by WebSub",
      needs: "reader",
      body: documentRequestBody("NewRegistration", {
        form: formSchema([
          "callback",
          "hub.mode",
          "hub.topic",
          "hub.callback",
          "hub.secret",
          "hub.lease_seconds"
        ])
      }),
      responses: {
        201: viewResponse("Registration", "Registered, with its secret", ["Location", "Link"]),
        202: {
          ...viewResponse("Registration", "The intent of the subscriber is verified now", [
            "Location?",
            "Link"
          ]),
          isView: false
        }
      }
    },
    "GET /mailboxes/{mailbox}/registrations/{registration}": {
      id: "getRegistration",
      summary: "A registration and its status",
      needs: "reader",
      responses: { 200: viewResponse("Registration", "The registration", ["Link"]) }
    },
    "PUT /mailboxes/{mailbox}/registrations/{registration}": {
      id: "liftRegistration",
      summary: "Lifts a suspension or verifies again; it may name another callback",
      needs: "reader",
      body: documentRequestBody("ChangedRegistration", { isOptional: true }),
      problems: ["conflict"],
      responses: { 200: viewResponse("Registration", "The registration as it is now", ["Link"]) }
    },
    "POST /mailboxes/{mailbox}/registrations/{registration}": {
      id: "changeRegistrationByForm",
      summary: "PUT or DELETE, as `method` says, for a page's form",
      needs: "reader",
      body: formRequestBody(
        formSchema({ method: oneOf("put", "delete"), callback: text }, ["method"])
      ),
      problems: ["precondition-failed"],
      responses: {
        200: withoutHtml(viewResponse("Registration", "The registration as it is now", ["Link"])),
        204: emptyResponse("It is removed", ["Link"]),
        303: seeOtherResponse
      }
    },
    "DELETE /mailboxes/{mailbox}/registrations/{registration}": {
      id: "unregister",
      summary: "Removes a registration; nothing is pushed afterwards",
      needs: "reader",
      problems: ["conflict"],
      responses: { 204: emptyResponse("It is removed", ["Link"]) }
    },
    "POST /mailboxes/{mailbox}/registrations/{registration}/secret": {
      id: "rotateSecret",
      summary: "Creates a new secret; the old one also signs for a while",
      needs: "reader",
      body: buttonRequestBody,
      responses: { 200: viewResponse("Registration", "The new secret, shown this once", ["Link"]) }
    }
  }
}
