/** The operations of cabinets (protocol §1.5). */
import { cabinetMailboxesMax } from "../../../actors/index.ts"
import { attributes, changeByForm, dateTime, digits, discardedSchema, documentRequestBody,
  elementOrAttribute, feedContent, flag, formSchema, ignored, list, object, pagingParameters, ref,
  rootElement, sinceParameters, someOf, text, uri, viewResponse,
  visibleText } from "../../formats/openapi/index.ts"
import { containsCharsMax, titleCharsMax, uriCharsMax } from "../../limits.ts"
import type { ResourceDefinition } from "../../resource.ts"
import { deleteCabinet, getCabinet, getCabinets, postCabinetForm, postCabinets,
  putCabinet } from "./cabinet-handlers.ts"
import { createForm, replaceForm } from "./cabinet-views.ts"

const sentUri = { ...uri, maxLength: uriCharsMax }

const title = { ...text, maxLength: titleCharsMax }

const contains = { ...text, maxLength: containsCharsMax }

const query = object(attributes({ contains, since: text }))

/** What a listing shows of each mailbox beside its URI. */
const read = attributes({ readable: flag, discarded: discardedSchema })

const listed = { ...attributes({ href: uri, time: text }), notification: list(ref("Notification")) }

export const cabinetResource: ResourceDefinition = {
  tag: "cabinets",
  about: "Merged views of several mailboxes.",
  schemas: {
    NewCabinet: rootElement("cabinet", {
      title: elementOrAttribute(title),
      mailbox: {
        ...someOf(object({ ...attributes({ href: sentUri }), ...ignored(read) }, ["href"])),
        maxItems: cabinetMailboxesMax
      },
      query,
      ...ignored(listed)
    }, ["mailbox"]),
    Cabinet: rootElement("cabinet", {
      ...attributes({ href: uri }),
      title: text,
      mailbox: list(object(attributes({ href: uri }), ["href"])),
      query
    }, ["href", "mailbox"]),
    CabinetListing: rootElement("cabinet", {
      ...attributes({ title: text }),
      ...listed,
      mailbox: list(object({ ...attributes({ href: uri }), ...read }, ["href", "readable"])),
      query
    }, ["href", "time", "notification"]),
    Cabinets: rootElement("cabinets", {
      cabinet: list(
        object(
          attributes({ href: uri, title: text, created: dateTime, mailboxes: digits }),
          ["href", "created"]
        )
      )
    }, ["cabinet"])
  },
  operations: {
    "GET /cabinets": {
      handle: getCabinets,
      id: "listCabinets",
      summary: "Lists the caller's own cabinets, newest first",
      needs: "account",
      scopes: ["read"],
      query: pagingParameters,
      responses: { 200: viewResponse("Cabinets", "A page of the listing") }
    },
    "POST /cabinets": {
      handle: postCabinets,
      form: () => createForm(),
      id: "createCabinet",
      summary: "Creates a cabinet",
      needs: "account",
      scopes: ["admin"],
      body: documentRequestBody("NewCabinet", {
        form: formSchema(
          { title, mailbox: visibleText, contains: text, since: text },
          [
            "mailbox"
          ]
        )
      }),
      responses: { 201: viewResponse("Cabinet", "The cabinet") }
    },
    "GET /cabinets/{cabinet}": {
      handle: getCabinet,
      id: "readCabinet",
      summary: "Reads the notifications of all mailboxes of a cabinet, in order of receipt",
      needs: "role",
      scopes: ["read"],
      query: sinceParameters,
      problems: ["unknown-cursor"],
      responses: {
        200: viewResponse("CabinetListing", "A page of the listing", ["Discarded?"], feedContent)
      }
    },
    "PUT /cabinets/{cabinet}": {
      handle: putCabinet,
      id: "replaceCabinet",
      summary: "Replaces the contents of a cabinet",
      needs: "role",
      scopes: ["admin"],
      body: documentRequestBody("NewCabinet"),
      problems: ["conflict"],
      responses: { 200: viewResponse("Cabinet", "The changed cabinet") }
    },
    "POST /cabinets/{cabinet}": {
      handle: postCabinetForm,
      form: ({ request }, _fields, service) => replaceForm(service, request.path),
      ...changeByForm(
        "Cabinet",
        "NewCabinet",
        formSchema(["method", "version", "title", "mailbox", "contains", "since"]),
        "role",
        ["admin"]
      )
    },
    "DELETE /cabinets/{cabinet}": {
      handle: deleteCabinet,
      id: "deleteCabinet",
      summary: "Removes a cabinet; its mailboxes stay",
      needs: "role",
      scopes: ["admin"],
      problems: ["conflict"]
    }
  }
}
