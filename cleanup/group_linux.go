// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import "context"

func removeLinks(ctx context.Context, s *session, items []Item, done doneFunc) {
	each(func(ctx context.Context, s *session, item Item) error {
		return removeLink(s, item.ref.(linkRef))
	})(ctx, s, items, done)
}
