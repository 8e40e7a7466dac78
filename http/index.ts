/** The HTTP service: what the composition root needs of it. */
export { makeApplication } from "./app.ts"
export { CredentialCache, operatorAccount, randomId, randomIds } from "./auth/credentials/index.ts"
export { Issuer, metadataUrl, parseKeySet, parseKeysUrl } from "./auth/issuer/index.ts"
export { collectBlobs } from "./blob-garbage.ts"
export { Documentation } from "./documentation/index.ts"
export { notificationDocuments } from "./documents.ts"
export { DocumentParser } from "./formats/xml/index.ts"
export { NodeHistory } from "./history/index.ts"
export { claimPathCharsMax, claimPathDotsMax, clockToleranceMaxMs,
  keySetBytesMax } from "./limits.ts"
export { countRequest, HttpMetrics, type Service, type ShownSetting } from "./pipeline/index.ts"
export { RowCaches } from "./query-engine/index.ts"
export { ActorListings, BlockList, Clients, DiskFloor, type DiskFreeMin, DocsSearches, floorBytes,
  makeRateLimiter, OpenAnswers, type Rate, RefusalCounter, RemoteReader, RowScans,
  TextSearches } from "./rates/index.ts"
export { sweepRequests } from "./request-record.ts"
export { resourceTable } from "./resource-table.ts"
export { bootstrap } from "./resources/accounts/index.ts"
export { keepPublishingFigures, recordedTexts } from "./resources/cluster/index.ts"
export { sweepReservations } from "./resources/content/index.ts"
export { retryLoads, watchLoads } from "./resources/customers/index.ts"
export { type FirstMailbox, openFirstMailbox } from "./resources/mailboxes/index.ts"
export { makeMetricFamilies, makeMetricsText, type MetricFamily, type MetricLabels,
  metricsType } from "./resources/observability/index.ts"
export { sweepQueries } from "./resources/rows/index.ts"
export { assertNative, documentHeaders, listen, ServerUnavailable,
  type SpillSettings } from "./wire/index.ts"
