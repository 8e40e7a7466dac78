/** The routes of Area B (protocol §2): the bridge, sessions, answers, stateless questions. */
import { Effect } from "effect"
import { type ResourceHandler, type Route, type Service, viewAnswer,
  withFormRedisplay } from "../../pipeline/index.ts"
import { deleteSession, getAnswer, getSession, getSessions, postAnswerForm, postSessions,
  putAnswer } from "./session-handlers.ts"
import { answerSteps, collectionPath, entryPath, entryView, questionForm,
  stepTitles } from "./session-views.ts"
import { questionRoutes } from "./stateless-questions.ts"

export const sessionRoutes = (service: Service): ReadonlyArray<Route<ResourceHandler>> => [
  { pattern: entryPath, methods: { GET: { handle: () => Effect.succeed(viewAnswer(entryView)) } } },
  {
    pattern: collectionPath,
    methods: {
      GET: { handle: getSessions(service) },
      POST: { handle: postSessions(service) }
    }
  },
  {
    pattern: `${collectionPath}/{session}`,
    methods: {
      GET: { handle: getSession(service) },
      DELETE: { handle: deleteSession(service) }
    }
  },
  ...answerSteps.map((step): Route<ResourceHandler> => ({
    pattern: `${collectionPath}/{session}/${step}`,
    methods: {
      GET: { handle: getAnswer(step)(service) },
      PUT: { handle: putAnswer(step)(service) },
      POST: {
        handle: withFormRedisplay(
          ({ request }) => questionForm(request.path, stepTitles[step]),
          postAnswerForm(step)(service)
        )
      }
    }
  })),
  ...questionRoutes
]
