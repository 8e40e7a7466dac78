/** The operations of the audit log (protocol §7). */
import { auditActions } from "../../audit/index.ts"
import { attributes, dateTime, digits, elementText, list, object, oneOf, pagingParameters,
  rootElement, text, viewResponse } from "../../formats/openapi/index.ts"
import type { ResourceDefinition } from "../../resource.ts"
import { getAudit, getAuditChain } from "./audit-handlers.ts"
import { auditOutcomes } from "./audit-views.ts"

const ends = attributes({
  entries: digits,
  "last-number": digits,
  "last-hash": text,
  "anchor-number": digits,
  "anchor-hash": text,
  "anchor-time": dateTime
})

const endNames = ["entries", "last-number", "last-hash", "anchor-number", "anchor-hash"]

const entry = object(
  attributes({
    number: digits,
    time: dateTime,
    account: text,
    from: text,
    action: text,
    target: text,
    outcome: oneOf(...auditOutcomes),
    of: digits,
    count: digits,
    detail: text,
    hash: text
  }),
  ["number", "time", "action", "target", "outcome", "hash"]
)

const item = object({ ...attributes({ number: digits }), ...elementText("As it is stored.") }, [
  "number"
])

export const auditResource: ResourceDefinition = {
  tag: "audit",
  about: "The audit log: who did what, from where and when; for the role admin.",
  isGuarded: true,
  schemas: {
    Audit: rootElement("audit", { ...ends, entry: list(entry) }, [...endNames, "entry"]),
    AuditChain: rootElement("audit-chain", { ...ends, item: list(item) }, [...endNames, "item"])
  },
  operations: {
    "GET /audit": {
      handle: getAudit,
      id: "listAudit",
      summary: "Lists the audit log, newest first; of each operation its outcome",
      needs: "role",
      scopes: ["admin"],
      query: {
        account: { description: "Only what this account did.", schema: text },
        action: { description: "Only this action.", schema: oneOf("", ...auditActions) },
        outcome: {
          description: "Only this outcome; by default every one but `begun`.",
          schema: oneOf("", ...auditOutcomes)
        },
        target: { description: "Only paths that begin with this.", schema: text },
        since: { description: "Only what happened since, a time of RFC 3339.", schema: dateTime },
        ...pagingParameters
      },
      responses: { 200: viewResponse("Audit", "A page of the log") }
    },
    "GET /audit/chain": {
      handle: getAuditChain,
      id: "readAuditChain",
      summary: "Reads the entries as they are stored, oldest first, to check their hashes",
      needs: "role",
      scopes: ["admin"],
      query: pagingParameters,
      responses: { 200: viewResponse("AuditChain", "A page of the stored entries") }
    }
  }
}
