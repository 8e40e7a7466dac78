/** What cabinets take and answer. */
import { type Area, attributes, digits, document, feeds, flag, formOf, list, nothing, object,
  paging, ref, root, seeOther, text, time, uri, view } from "../../formats/openapi/index.ts"

const query = object(attributes({ contains: text, since: text }))

export const cabinetOperations: Area = {
  tag: "cabinets",
  about: "Several mailboxes read as one.",
  schemas: {
    NewCabinet: root("cabinet", {
      title: text,
      mailbox: list(object(attributes({ href: uri }), ["href"])),
      query
    }, ["mailbox"]),
    Cabinet: root("cabinet", {
      ...attributes({ href: uri }),
      title: text,
      mailbox: list(object(attributes({ href: uri }), ["href"])),
      query
    }, ["href", "mailbox"]),
    CabinetListing: root("cabinet", {
      ...attributes({ href: uri, title: text, time: text }),
      mailbox: list(object(attributes({ href: uri, readable: flag }), ["href", "readable"])),
      query,
      notification: list(ref("Notification"))
    }, ["href", "time", "notification"]),
    Cabinets: root("cabinets", {
      cabinet: list(
        object(
          attributes({ href: uri, title: text, created: time, mailboxes: digits }),
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
      query: paging,
      answers: { 200: view("Cabinets", "A page of them") }
    },
    "POST /cabinets": {
      id: "createCabinet",
      summary: "Makes a cabinet",
      needs: "account",
      body: document("NewCabinet", {
        form: formOf(["title", "mailbox", "contains", "since"], ["mailbox"])
      }),
      answers: { 201: view("Cabinet", "The cabinet", ["Location"]) }
    },
    "GET /cabinets/{cabinet}": {
      id: "readCabinet",
      summary: "The notifications of all its mailboxes, in order of receipt",
      needs: "role",
      query: {
        limit: paging["limit"] ?? { description: "", schema: text },
        since: {
          description: "The `time` of an earlier answer, or a time of RFC 3339.",
          schema: text
        }
      },
      problems: ["gone"],
      answers: { 200: view("CabinetListing", "A page of them", [], feeds) }
    },
    "PUT /cabinets/{cabinet}": {
      id: "replaceCabinet",
      summary: "Replaces what is in the cabinet",
      needs: "role",
      body: document("NewCabinet"),
      problems: ["gone", "conflict"],
      answers: { 200: view("Cabinet", "The cabinet as it is now") }
    },
    "POST /cabinets/{cabinet}": {
      id: "changeCabinetByForm",
      summary: "PUT, or with `method=delete` DELETE, for a page's form",
      needs: "role",
      body: document("NewCabinet", {
        form: formOf(["method", "title", "mailbox", "contains", "since"])
      }),
      problems: ["gone", "precondition-failed"],
      answers: { 303: seeOther }
    },
    "DELETE /cabinets/{cabinet}": {
      id: "deleteCabinet",
      summary: "Removes the cabinet; its mailboxes stay",
      needs: "role",
      problems: ["gone", "conflict"],
      answers: { 204: nothing("It is removed") }
    }
  }
}
