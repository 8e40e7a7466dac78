/** The operations of `/cluster` and of quarantines. */
import { byDocumentName, CommitFigures, WaitingFigures } from "./node-figures.ts"
import { attributes, buttonRequestBody, dateTime, digits, elementText, emptyResponse, flag, list,
  object, oneOf, pagingParameters, ref, rootElement, seeOtherResponse, text, uri,
  viewResponse } from "../../formats/openapi/index.ts"
import type { ResourceDefinition } from "../../resource.ts"
import { getActor, getActors, getCluster, getHistory, getMessages, getQuarantine,
  liftQuarantine } from "./cluster-handlers.ts"

/** The attributes of figures that are numbers. */
const figures = (fields: Readonly<Record<string, unknown>>) =>
  attributes(byDocumentName(Object.fromEntries(
    Object.keys(fields).map((name) => [name, digits])
  )))

const waiting = figures(WaitingFigures.fields)

const deliveries = object({
  ...waiting,
  ...attributes({ "circuits-open": digits }),
  origins: object({
    origin: list(
      object(
        { ...attributes({ uri: text, circuit: oneOf("open", "closed") }), ...waiting },
        ["uri"]
      )
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
  commits: object(figures(CommitFigures.fields)),
  deliveries,
  quarantines: object({ quarantine: list(ref("Quarantine")) })
}, ["name", "self", "leaving", "answers"])

/** One sample: rates are of a second, quantiles are left out where nothing was counted. */
const sample = object(
  attributes({
    at: dateTime,
    "requests-per-second": digits,
    "request-p50-ms": digits,
    "request-p99-ms": digits,
    "commits-per-second": digits,
    "commit-p50-ms": digits,
    "commit-p99-ms": digits,
    "attempts-per-second": digits,
    "loop-percent": digits,
    queued: digits,
    "timers-due": digits,
    "deliveries-waiting": digits,
    "memory-bytes": digits
  }),
  [
    "at",
    "requests-per-second",
    "commits-per-second",
    "attempts-per-second",
    "loop-percent",
    "queued",
    "timers-due",
    "deliveries-waiting",
    "memory-bytes"
  ]
)

const event = object({
  ...attributes({
    at: dateTime,
    type: oneOf(
      "joined",
      "restarted",
      "leaving",
      "left",
      "removed",
      "took",
      "lost",
      "quarantined",
      "lifted",
      "disconnected",
      "connected"
    ),
    node: text,
    from: text,
    count: digits,
    actor: text,
    reason: text
  }),
  ...elementText("What happened, in words.")
}, ["at", "type", "node"])

/** The items of a log. */
const items = object({
  item: list(object({ ...attributes({ n: digits }), ...elementText("The item.") }, ["n"]))
})

/** The recent commits of an actor, which the answering node has recorded. */
const commits = object({
  ...attributes({ node: text, since: dateTime, recorded: digits }),
  commit: list(object(
    attributes({
      name: text,
      href: uri,
      at: dateTime,
      state: oneOf("written", "removed"),
      appended: digits,
      removed: digits,
      head: digits
    }),
    ["name", "href", "at", "appended", "removed", "head"]
  ))
}, ["node", "since", "recorded"])

/** An actor after one of these commits. */
const past = object({
  ...attributes({
    commit: text,
    at: dateTime,
    previous: uri,
    next: uri,
    head: digits,
    removed: flag,
    "state-characters": digits,
    timer: dateTime,
    "timer-known": flag,
    "log-known": flag
  }),
  state: text,
  items
}, ["commit", "at", "head", "timer-known", "log-known"])

const message = object({
  ...attributes({
    n: digits,
    at: dateTime,
    kind: text,
    id: text,
    href: uri,
    name: text,
    timer: flag,
    outcome: oneOf("waiting", "replied", "refused", "failed", "indeterminate"),
    result: text,
    "took-ms": digits
  }),
  ...elementText("Its fields as JSON, without what users wrote.")
}, ["n", "at", "kind", "name", "outcome"])

export const clusterResource: ResourceDefinition = {
  tag: "cluster",
  about: "The status of the nodes; for the role admin.",
  isGuarded: true,
  schemas: {
    Cluster: rootElement("cluster", {
      ...attributes({ node: text, shards: digits, owned: digits, handoff: digits }),
      nodes: object({ node: list(node) }),
      owners: object({
        owner: list(object({
          ...attributes({ node: text, count: digits }),
          ...elementText("The shards that it owns, as ranges.")
        }, ["node", "count"]))
      })
    }, ["node", "shards", "owned", "handoff", "nodes", "owners"]),
    Actors: rootElement("actors", {
      ...attributes({ kind: text }),
      actor: list(object(attributes({ id: text, href: uri }), ["id", "href"]))
    }, ["kind"]),
    Actor: rootElement("actor", {
      ...attributes({
        href: uri,
        kind: text,
        id: text,
        shard: digits,
        node: text,
        loaded: flag,
        queued: digits,
        "queued-since": dateTime,
        head: digits,
        format: digits,
        "state-characters": digits,
        timer: dateTime,
        restarts: digits,
        fault: text,
        "fault-at": dateTime,
        "quarantined-since": dateTime,
        "quarantined-until": dateTime
      }),
      waiting: object({
        message: list(object(attributes({ name: text, count: digits }), ["name", "count"]))
      }),
      state: text,
      items,
      commits,
      past
    }, ["href", "kind", "id", "shard", "loaded", "queued", "head", "restarts"]),
    Messages: rootElement("messages", {
      ...attributes({ node: text, recording: oneOf("on", "off"), since: dateTime, kind: text }),
      message: list(message)
    }, ["node", "recording"]),
    History: rootElement("history", {
      ...attributes({ node: text, "sample-seconds": digits }),
      samples: object({ sample: list(sample) }),
      events: object({ event: list(event) })
    }, ["node", "sample-seconds"]),
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
      handle: getCluster,
      id: "getCluster",
      summary: "Reads the status of the nodes, and the owner of each shard",
      needs: "role",
      scopes: ["admin"],
      responses: { 200: viewResponse("Cluster", "The status") }
    },
    "GET /cluster/actors/{kind}": {
      handle: getActors,
      id: "getActors",
      summary: "Lists the actors of a kind that have a record, by id, or leads to one",
      isNeverGone: true,
      needs: "role",
      scopes: ["admin"],
      query: {
        ...pagingParameters,
        id: {
          description: "The id of an actor: the answer leads to it.",
          schema: { ...text, pattern: "^\\s*[A-Za-z0-9_=-]{1,200}\\s*$" }
        }
      },
      responses: { 200: viewResponse("Actors", "A page of the listing"), 303: seeOtherResponse }
    },
    "GET /cluster/actors/{kind}/{id}": {
      handle: getActor,
      id: "getActor",
      summary: "Reads the state of an actor, the end of its log, its timer and its last fault",
      description:
        "As its node has it: in memory, or else in the store. What users wrote is not shown; of " +
        "waiting messages their kinds are. A node forgets the last fault when it restarts. Where " +
        "the answering node records (`INSPECTOR`), it shows its recent commits of the actor, and " +
        "how the actor was after one. The audit log has each read, but those of its own actor.",
      isNeverGone: true,
      needs: "role",
      scopes: ["admin"],
      query: {
        commit: {
          description: "The name of a recorded commit: the answer has the actor after it, too.",
          schema: {
            ...text,
            pattern: "^[A-Za-z0-9_=-]{1,100}\\.[A-Za-z0-9_-]{1,64}\\.[1-9][0-9]{0,14}$"
          }
        }
      },
      responses: { 200: viewResponse("Actor", "The actor") }
    },
    "GET /cluster/history": {
      handle: getHistory,
      id: "getHistory",
      summary: "Reads what the answering node has measured in the last hour, and its time line",
      needs: "role",
      scopes: ["admin"],
      responses: {
        200: viewResponse("History", "Samples of its figures, and events of the cluster")
      }
    },
    "GET /cluster/messages": {
      handle: getMessages,
      id: "getMessages",
      summary: "Lists the last messages to actors of the answering node, the newest first",
      description:
        "Where the node records (`INSPECTOR`): when each came, to which actor, its outcome and " +
        "how long that took. What users wrote is not shown. The audit log has each read, but " +
        "those of its own actor.",
      needs: "role",
      scopes: ["admin"],
      query: {
        kind: {
          description: "Only messages to actors of this kind.",
          schema: { ...text, pattern: "^[a-z-]{1,64}$" }
        }
      },
      responses: { 200: viewResponse("Messages", "The messages that the node has recorded") }
    },
    "GET /cluster/quarantine/{kind}/{id}": {
      handle: getQuarantine,
      id: "getQuarantine",
      summary: "Reads the quarantine of an actor",
      isNeverGone: true,
      needs: "role",
      scopes: ["admin"],
      responses: {
        200: viewResponse("Quarantine", "The quarantine: its begin, its end and its reason")
      }
    },
    "POST /cluster/quarantine/{kind}/{id}": {
      handle: liftQuarantine,
      id: "liftQuarantineByForm",
      summary: "Lifts the quarantine, for a page's form",
      isNeverGone: true,
      needs: "role",
      scopes: ["admin"],
      body: buttonRequestBody,
      responses: { 204: emptyResponse("The actor receives messages again"), 303: seeOtherResponse }
    },
    "DELETE /cluster/quarantine/{kind}/{id}": {
      handle: liftQuarantine,
      id: "liftQuarantine",
      summary: "Lifts the quarantine",
      isNeverGone: true,
      needs: "role",
      scopes: ["admin"],
      isUnconditional: true,
      responses: { 204: emptyResponse("The actor receives messages again") }
    }
  }
}
