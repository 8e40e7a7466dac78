/** What every request passes: routing, calls, preconditions, failures, rate limits. */
export { awaitWritable, ChangeWaiter, preferredWaitSeconds,
  withChangeWaiter } from "./actor-waiter.ts"
export { actorIdOf, bodyError, type Call, defineHandler, emptyAnswer, type Handled,
  type HandlerAnswer, isPageWanted, noStore, readBody, readDocument, readerHeaders, readInput,
  readQuery, type RequestInput, type ResourceHandler, seeOther, unsupportedMediaType,
  type ViewAnswer, viewAnswer } from "./call.ts"
export { challenges, type HandlerFailure, type HeaderList, HttpError, httpError, invalidTokenError,
  refusalError, toProblem } from "./failures.ts"
export { attachForm, submittedFields, withFormRedisplay } from "./form-redisplay.ts"
export { countRequest, type DeliveryMetrics, durationBoundsMs, HttpMetrics,
  type RouteMetrics } from "./http-metrics.ts"
export { nextLink, type PageRequest, readPageRequest } from "./paging.ts"
export { chooseRange, contentRange, evaluatePreconditions, httpDate,
  isIfRangeSatisfied } from "./preconditions.ts"
export { clientAddress, makeRateLimiter, type Rate } from "./rate-limits.ts"
export { conditionFailed, entityTags, expectedVersion, isConditional, preconditionsHold,
  renderAnswer, type Rendered, renderedAnswer, renderFailure, renderView,
  scriptHandler } from "./responses.ts"
export { compileRoutes, type Parameters, type Route } from "./routing.ts"
export { absoluteUri, ask, askOrRefusal, expectReply, type HttpSettings, localPath,
  type Service } from "./service.ts"
