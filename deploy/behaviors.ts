/** The behaviors of the service and its HTTP client, for the settings of a node. */
import type { AnyBehavior, Traces } from "../runtime/index.ts"
import { behaviors, type Dependencies, linksUnder } from "../actors/index.ts"
import { makeOutbound } from "../actors/outbound/index.ts"
import { notificationDocuments } from "../http/index.ts"
import type { NodeSettings } from "./settings/index.ts"
import { version } from "./version.ts"

/** A client for requests to public addresses and `allow`; `ca` is a certificate in PEM. */
export const outboundOf = (allow: ReadonlyArray<string>, ca?: string, traces?: Traces) =>
  makeOutbound({
    allow,
    userAgent: `restante/${version}`,
    nowMs: () => Date.now(),
    random: Math.random,
    traces,
    ...ca === undefined ? {} : { ca: [ca] }
  })

/** Every behavior of the service, whose URIs begin with `baseUrl`. */
export const behaviorsOf = (
  settings: NodeSettings,
  baseUrl: string,
  ports: Pick<
    Dependencies,
    "blobs" | "droppedRequests" | "keyring" | "outbound" | "records" | "traces" | "usage" | "vapid"
  >
): ReadonlyArray<AnyBehavior> =>
  behaviors({
    ...ports,
    links: linksUnder(baseUrl, settings.contentBaseUrl),
    documents: notificationDocuments,
    limits: { anonymousBytesMax: settings.mailboxAnonymousBytesMax },
    schedule: settings.retrySchedule,
    retentionMs: settings.outgoingRetention,
    auditRetentionMs: settings.auditRetention,
    anonymousRetentionMs: settings.anonymousRetention,
    sessionRetentionMs: settings.sessionRetention,
    random: Math.random
  })
