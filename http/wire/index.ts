/** The HTTP server: requests, bodies, streams. The only importer of the native package. */
export { documentBody, noBody, type RequestBody, streamBody } from "./body.ts"
export { EventStream, eventText } from "./event-stream.ts"
export { eventHeaders, Exchange, type HttpReply } from "./exchange.ts"
export { documentHeaders, documentPolicy, keepJoined, KeptFields, optionsHeaders, type ReplyHeaders,
  scriptPolicy } from "./header-fields.ts"
export { assertNative, ServerUnavailable } from "./native-module.ts"
export type { BodyFault, HttpRequest, RequestHeaders } from "./request.ts"
export type { AnswerBytes } from "./response-stream.ts"
export { listen } from "./server.ts"
export type { SpillSettings } from "./uploads/index.ts"
