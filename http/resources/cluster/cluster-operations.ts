/** The operations of `/cluster` and of quarantines. */
import { attributes, buttonRequestBody, dateTime, digits, elementText, emptyResponse, flag, list,
  object, oneOf, type OperationGroup, ref, rootElement, seeOtherResponse, text, uri,
  viewResponse } from "../../formats/openapi/index.ts"

const commits = attributes({
  groups: digits,
  commits: digits,
  failures: digits,
  conflicts: digits,
  "p50-ms": digits,
  "p99-ms": digits,
  "group-size": digits,
  "group-size-max": digits
})

const waiting = { waiting: digits, "in-flight": digits, "oldest-waiting-ms": digits }

const deliveries = object({
  ...attributes({ ...waiting, "circuits-open": digits }),
  origins: object({
    origin: list(
      object(attributes({ uri: text, circuit: oneOf("open", "closed"), ...waiting }), ["uri"])
    )
  })
})

const node = object({
  ...attributes({
    name: text,
    incarnation: text,
    self: flag,
    leaving: flag,
    answers: flag,
    version: text,
    engine: text,
    since: dateTime,
    "uptime-seconds": digits,
    "memory-bytes": digits
  }),
  kinds: object({
    kind: list({
      ...object(attributes({ name: text }), ["name"]),
      additionalProperties: digits,
      description: "Counts of the actors of that kind, as attributes."
    })
  }),
  timers: object(
    attributes({ known: digits, due: digits, "under-way": digits, next: dateTime })
  ),
  commits: object(commits),
  deliveries,
  quarantines: object({ quarantine: list(ref("Quarantine")) })
}, ["name", "self", "leaving", "answers"])

export const clusterOperations: OperationGroup = {
  tag: "cluster",
  about: "How the nodes of the service stand; for the role admin.",
  schemas: {
    Cluster: rootElement("cluster", {
      ...attributes({ node: text, shards: digits, owned: digits }),
      nodes: object({ node: list(node) }),
      owners: object({
        owner: list(object({
          ...attributes({ node: text, count: digits }),
          ...elementText("The shards that it owns, as ranges.")
        }, ["node", "count"]))
      })
    }, ["node", "shards", "owned", "nodes", "owners"]),
    Quarantine: rootElement(
      "quarantine",
      attributes({
        href: uri,
        node: text,
        kind: text,
        id: text,
        since: dateTime,
        until: dateTime,
        reason: text
      }),
      ["href", "node", "kind", "id", "since", "until"]
    )
  },
  operations: {
    "GET /cluster": {
      id: "getCluster",
      summary: "Nodes, shards and their owners, and how each node stands",
      needs: "role",
      responses: { 200: viewResponse("Cluster", "How they stand") }
    },
    "GET /cluster/quarantine/{kind}/{id}": {
      id: "getQuarantine",
      summary: "An actor that rests after it failed",
      needs: "role",
      responses: { 200: viewResponse("Quarantine", "Since when, until when, and why") }
    },
    "POST /cluster/quarantine/{kind}/{id}": {
      id: "liftQuarantineByForm",
      summary: "The same as DELETE, for a page's form",
      needs: "role",
      body: buttonRequestBody,
      responses: { 204: emptyResponse("It works again"), 303: seeOtherResponse }
    },
    "DELETE /cluster/quarantine/{kind}/{id}": {
      id: "liftQuarantine",
      summary: "Has the actor work again",
      needs: "role",
      isUnconditional: true,
      responses: { 204: emptyResponse("It works again") }
    }
  }
}
