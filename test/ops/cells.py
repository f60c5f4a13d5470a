# SPDX-License-Identifier: Apache-2.0
"""The cells of LSTM and GRU as functions of any device: they have no kernel on the CPU, where they are what eager's parts give."""

import torch

aten = torch.ops.aten


def lstm_cell(gates, hidden_gates, cx, bias, hidden_bias):
    if gates.device.type == "lazy":
        return aten._thnn_fused_lstm_cell(gates, hidden_gates, cx, bias, hidden_bias)
    i, f, g, o = (hidden_gates + hidden_bias + (gates + bias)).chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * cx + i * g
    return o * cy.tanh(), cy, torch.cat([i, f, g, o], 1)


def lstm_cell_backward(grad_hy, grad_cy, cx, cy, workspace):
    if cx.device.type == "lazy":
        return aten._thnn_fused_lstm_cell_backward_impl(grad_hy, grad_cy, cx, cy, workspace, True)
    i, f, g, o = workspace.chunk(4, 1)
    grad_out = torch.zeros_like(o) if grad_hy is None else grad_hy * cy.tanh()
    state = grad_cy if grad_hy is None else aten.tanh_backward(grad_hy * o, cy.tanh())
    if grad_hy is not None and grad_cy is not None:
        state = grad_cy + state
    gates = torch.cat([aten.sigmoid_backward(state * g, i), aten.sigmoid_backward(state * cx, f), aten.tanh_backward(state * i, g),
                       aten.sigmoid_backward(grad_out, o)], 1)
    return gates, state * f, gates.sum(0)


def gru_cell(gates, hidden_gates, hx, bias, hidden_bias):
    if gates.device.type == "lazy":
        return aten._thnn_fused_gru_cell(gates, hidden_gates, hx, bias, hidden_bias)
    (ir, iu, i), (hr, hu, h) = ((x if b is None else x + b).chunk(3, 1) for x, b in ((gates, bias), (hidden_gates, hidden_bias)))
    reset, update = (hr + ir).sigmoid(), (hu + iu).sigmoid()
    fresh = (i + h * reset).tanh()
    return (hx - fresh) * update + fresh, torch.cat([reset, update, fresh, hx, h], 1)


def gru_cell_backward(grad_hy, workspace):
    if grad_hy.device.type == "lazy":
        return aten._thnn_fused_gru_cell_backward(grad_hy, workspace, True)
    reset, update, fresh, hx, h = workspace.chunk(5, 1)
    grad_hx = grad_hy * update
    grad_fresh = aten.tanh_backward(grad_hy - grad_hx, fresh)
    grad_update = aten.sigmoid_backward(grad_hy * (hx - fresh), update)
    grad_reset = aten.sigmoid_backward(grad_fresh * h, reset)
    both = [torch.cat([grad_reset, grad_update, last], 1) for last in (grad_fresh, grad_fresh * reset)]
    return *both, grad_hx, both[0].sum(0), both[1].sum(0)
