/** What cabinets take and answer. */
import { attributes, dateTime, digits, documentRequestBody, emptyResponse, feedContent, flag,
  formSchema, list, object, type OperationGroup, pagingParameters, ref, rootElement,
  seeOtherResponse, text, uri, viewResponse } from "../../formats/openapi/index.ts"

const query = object(attributes({ contains: text, since: text }))

export const cabinetOperations: OperationGroup = {
  tag: "cabinets",
  about: "Several mailboxes read as one.",
  schemas: {
    NewCabinet: rootElement("cabinet", {
      title: text,
      mailbox: list(object(attributes({ href: uri }), ["href"])),
      query
    }, ["mailbox"]),
    Cabinet: rootElement("cabinet", {
      ...attributes({ href: uri }),
      title: text,
      mailbox: list(object(attributes({ href: uri }), ["href"])),
      query
    }, ["href", "mailbox"]),
    CabinetListing: rootElement("cabinet", {
      ...attributes({ href: uri, title: text, time: text }),
      mailbox: list(object(attributes({ href: uri, readable: flag }), ["href", "readable"])),
      query,
      notification: list(ref("Notification"))
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
      id: "listCabinets",
      summary: "The caller's own cabinets, newest first",
      needs: "account",
      query: pagingParameters,
      responses: { 200: viewResponse("Cabinets", "A page of them") }
    },
    "POST /cabinets": {
      id: "createCabinet",
      summary: "Creates a cabinet",
      needs: "account",
      body: documentRequestBody("NewCabinet", {
        form: formSchema(["title", "mailbox", "contains", "since"], ["mailbox"])
      }),
      responses: { 201: viewResponse("Cabinet", "The cabinet", ["Location"]) }
    },
    "GET /cabinets/{cabinet}": {
      id: "readCabinet",
      summary: "The notifications of all its mailboxes, in order of receipt",
      needs: "role",
      query: {
        limit: pagingParameters["limit"] ?? { description: "", schema: text },
        since: {
          description: "The `time` of an earlier answer, or a time of RFC 3339.",
          schema: text
        }
      },
      problems: ["gone"],
      responses: { 200: viewResponse("CabinetListing", "A page of them", [], feedContent) }
    },
    "PUT /cabinets/{cabinet}": {
      id: "replaceCabinet",
      summary: "Replaces the contents of the cabinet",
      needs: "role",
      body: documentRequestBody("NewCabinet"),
      problems: ["gone", "conflict"],
      responses: { 200: viewResponse("Cabinet", "The cabinet as it is now") }
    },
    "POST /cabinets/{cabinet}": {
      id: "changeCabinetByForm",
      summary: "PUT, or with `method=delete` DELETE, for a page's form",
      needs: "role",
      body: documentRequestBody("NewCabinet", {
        form: formSchema(["method", "title", "mailbox", "contains", "since"])
      }),
      problems: ["gone", "precondition-failed"],
      responses: { 303: seeOtherResponse }
    },
    "DELETE /cabinets/{cabinet}": {
      id: "deleteCabinet",
      summary: "Removes the cabinet; its mailboxes stay",
      needs: "role",
      problems: ["gone", "conflict"],
      responses: { 204: emptyResponse("It is removed") }
    }
  }
}
