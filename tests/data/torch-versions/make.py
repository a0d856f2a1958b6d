import torch, sys, os
from torch import nn
import contextlib
nograd=torch.no_grad
GR=True
v=torch.__version__.split('+')[0]
out='/tmp/pt2/ver/tiny-%s'%v
class Block(nn.Module):
    def __init__(s,h=8,heads=4):
        super().__init__(); s.heads=heads
        s.norm=nn.LayerNorm(h); s.qkv=nn.Linear(h,3*h); s.proj=nn.Linear(h,h);
        s.register_buffer('scale',torch.full((1,),0.5),persistent=False)
    def forward(s,x,mask):
        b,t,h=x.shape
        q,k,v=s.qkv(s.norm(x)).chunk(3,-1)
        q,k,v=[a.view(b,t,s.heads,-1).transpose(1,2) for a in (q,k,v)]
        w=(q@k.transpose(-1,-2))*s.scale
        w=w.masked_fill(mask,float('-inf')).softmax(-1)
        x=x+s.proj((w@v).transpose(1,2).reshape(b,t,h))
        return torch.nn.functional.gelu(x)
class Tiny(nn.Module):
    def __init__(s):
        super().__init__(); s.embed=nn.Embedding(16,8); s.layers=nn.ModuleList([Block() for _ in range(int(os.environ.get('L','1')))]); s.head=nn.Linear(8,16,bias=False); s.head.weight=s.embed.weight
        s.register_buffer('count',torch.zeros((),dtype=torch.int64))
    def forward(s,ids):
        s.count.add_(1)

        with (nograd() if GR else contextlib.nullcontext()):
            t=ids.shape[1]; mask=torch.ones(t,t,dtype=torch.bool,device=ids.device).triu(1)
        x=s.embed(ids)
        for l in s.layers: x=l(x,mask)
        return {'logits':s.head(x),'hidden':x}
torch.manual_seed(0)
m=Tiny().eval(); ids=torch.randint(0,16,(2,8))
from safetensors.torch import save_file
with torch.no_grad(): o=m(ids)
save_file({'ids':ids,'output_0':o['logits'].contiguous(),'output_1':o['hidden'].contiguous()},out+'.expected.safetensors')
sd={k:v.clone().contiguous() for k,v in m.state_dict().items()}
for i in range(len(m.layers)): sd[f'layers.{i}.scale']=torch.full((1,),0.5)
save_file(sd,out+'.weights.safetensors')
m.count.zero_()
ep=torch.export.export(m,(ids,)); torch.export.save(ep,out+'.pt2')
d=torch.export.Dim; GR=v[:3]!='2.6'
ep=torch.export.export(m,(ids,),dynamic_shapes=({0:d('batch',max=64),1:d('seq',min=2,max=64)},)); torch.export.save(ep,out+'-dynamic.pt2')
import zipfile
for i in zipfile.ZipFile(out+'-dynamic.pt2').infolist(): print(i.filename,i.compress_type,i.file_size,hex(i.flag_bits))
