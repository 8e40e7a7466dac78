/** How a request is handled: routing, input, preconditions, idempotency, answers, failures. */
export { actorIdOf, type Call, type CallKey, createdAnswer, defineHandler, emptyAnswer, emptySource,
  formatFault, type Handled, type HandlerAnswer, isPageForm, isPageRequest, noStore,
  type PlainAnswer, readerHeaders, type ResourceHandler, seeOther, type ViewAnswer,
  viewAnswer } from "./call.ts"
export { attachForm, checkShownVersion, redisplayOutdated, shownVersion, submittedFields,
  withFormRedisplay } from "./form-redisplay.ts"
export { challenges, diskLow, firstPage, type HandlerFailure, HttpError, httpError,
  insufficientScope, invalidTokenError, overLimit, refusalError, toHttpError, tooManyOpen,
  unknownCursor, unprocessable } from "./http-error.ts"
export { countRequest, HttpMetrics, type RouteMetrics } from "./http-metrics.ts"
export { hasIdempotencyKey, type KeyCharge, type KeyOwner, noCharge, otherRequest, readKeyedRequest,
  runOnce } from "./idempotency.ts"
export { endRefusedStream, eventStreamAnswer, eventStreamType, type LiveSource, longPoll,
  longPollHeaders, preferredWaitSeconds, type StreamPace } from "./live-answers.ts"
export { chooseRange, contentRange, evaluatePreconditions, httpDate,
  isIfRangeSatisfied } from "./preconditions.ts"
export { bodyError, documentError, nextLink, type PageRequest, readBody, readDocument,
  readFormMethod, readInput, readLimit, readPageRequest, readQuery, type RequestInput, streamError,
  unsupportedMediaType } from "./request-input.ts"
export { conditionFailed, entityTags, entityTagsOfPages, expectedVersion, isConditional,
  notModifiedOf, preconditionsHold, renderFailure, renderView, renderWhole,
  underConditions } from "./responses.ts"
export { compileRoutes, type Match, type Parameters, type Route } from "./routing.ts"
export { absoluteUri, ask, askOrRefusal, awaitFormat, contentUri, describeActor, expectReply,
  failRefused, type HttpSettings, inPlace, localPath, requireFormat, type Service,
  type ShownSetting } from "./service.ts"
