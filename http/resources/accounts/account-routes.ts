/** The routes of accounts and their tokens (protocol §4). */
import { type ResourceHandler, type Route, type Service,
  withFormRedisplay } from "../../pipeline/index.ts"
import { deleteAccount, deleteToken, deleteTokens, getAccount, getAccounts, getToken, getTokens,
  postAccounts, postToken } from "./account-handlers.ts"
import { accountForm, collectionPath, tokenForm } from "./account-views.ts"

const pattern = `${collectionPath}/{account}`

export const accountRoutes = (service: Service): ReadonlyArray<Route<ResourceHandler>> => [
  {
    pattern: collectionPath,
    methods: {
      GET: { handle: getAccounts(service) },
      POST: { handle: withFormRedisplay(() => accountForm, postAccounts(service)) }
    }
  },
  {
    pattern,
    methods: {
      GET: { handle: getAccount(service) },
      DELETE: { handle: deleteAccount(service) }
    }
  },
  {
    pattern: `${pattern}/token`,
    methods: {
      POST: {
        handle: withFormRedisplay(
          ({ parameters }) => tokenForm(parameters.get("account")),
          postToken(service)
        )
      }
    }
  },
  {
    pattern: `${pattern}/tokens`,
    methods: {
      GET: { handle: getTokens(service) },
      DELETE: { handle: deleteTokens(service) }
    }
  },
  {
    pattern: `${pattern}/tokens/{token}`,
    methods: { GET: { handle: getToken(service) }, DELETE: { handle: deleteToken(service) } }
  }
]
